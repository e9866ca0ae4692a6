package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/IBM/sarama"
)

// Problem is one thing that is wrong with a topic.
type Problem struct {
	Topic string `json:"topic"`
	// Setting is the Kafka setting, "partitions", "replication", or "" when the
	// topic itself is not there.
	Setting string `json:"setting"`
	Want    string `json:"want"`
	Have    string `json:"have"`
	// Source is where the value comes from: the topic, a broker, the default.
	Source string `json:"source"`
	// Fatal says that the catalog must not be written or served over it. The
	// others cost time, space or safety against lost brokers, and are reported.
	Fatal bool `json:"fatal"`
	// Missing says that the topic is not there.
	Missing bool `json:"missing,omitempty"`
	// Detail says what the setting is for, and what to do.
	Detail string `json:"detail"`
}

// String says it in a sentence.
func (p Problem) String() string {
	switch {
	case p.Missing:
		return fmt.Sprintf("topic %s is not there: %s", p.Topic, p.Detail)
	case p.Have == "":
		return fmt.Sprintf("topic %s: %s: %s", p.Topic, p.Setting, p.Detail)
	}
	return fmt.Sprintf("topic %s: %s is %s (set by %s) and must be %s: %s", p.Topic, p.Setting, p.Have, p.Source, p.Want, p.Detail)
}

// FatalOnes keeps the problems that must not be worked over.
func FatalOnes(problems []Problem) []Problem {
	var fatal []Problem
	for _, p := range problems {
		if p.Fatal {
			fatal = append(fatal, p)
		}
	}
	return fatal
}

// CheckOptions says how strictly CheckTopics looks.
type CheckOptions struct {
	// Topics are the topics to look at; nil means all four.
	Topics []string
	// HiddenFatal makes it fatal that the settings can't be read, which takes the
	// right DescribeConfigs. Without it that is reported, and trusted.
	HiddenFatal bool
}

// CheckTopics gives every wrong setting of a catalog's topics. It changes nothing.
// The error is about reaching Kafka; what is wrong with topics is in the problems.
func (a *Admin) CheckTopics(ctx context.Context, t Topics, opts CheckOptions) ([]Problem, error) {
	names := opts.Topics
	if names == nil {
		names = t.All()
	}
	found, err := a.Describe(ctx, names...)
	if err != nil {
		return nil, err
	}
	var problems []Problem
	for _, s := range t.specs() {
		if !contains(names, s.topic) {
			continue
		}
		topic, ok := found[s.topic]
		if !ok {
			problems = append(problems, Problem{Topic: s.topic, Fatal: true, Missing: true,
				Detail: "create the catalog's topics with viewkeeper topics create; if a topic was lost, viewkeeper restore puts the catalog back"})
			continue
		}
		problems = append(problems, s.checkShape(topic)...)
		entries, err := a.configs(ctx, s.topic)
		var denied *sarama.DescribeConfigError
		switch {
		case errors.As(err, &denied) && Classify(denied.Err).Kind == KindDenied:
			problems = append(problems, Problem{Topic: s.topic, Setting: "settings", Source: "the brokers' ACLs", Fatal: opts.HiddenFatal,
				Detail: "they can't be read; give this client the right DescribeConfigs on the topic, so that wrong ones are noticed"})
		case errors.As(err, &denied) && denied.Err == sarama.ErrUnknownTopicOrPartition:
			problems = append(problems, Problem{Topic: s.topic, Fatal: true, Missing: true, Detail: "it vanished while it was looked at"})
		case err != nil:
			return nil, err
		default:
			problems = append(problems, s.checkConfigs(topic, entries)...)
		}
	}
	return problems, nil
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

func (a *Admin) configs(ctx context.Context, topic string) (map[string]sarama.ConfigEntry, error) {
	list, err := Bounded(ctx, func() ([]sarama.ConfigEntry, error) {
		return a.admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic})
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the settings of topic %s: %w", topic, err)
	}
	entries := make(map[string]sarama.ConfigEntry, len(list))
	for _, e := range list {
		// A broker may list a setting once for each place that sets it; the topic's
		// own value counts before all others, and any before the default.
		if old, ok := entries[e.Name]; ok && strength(old) >= strength(e) {
			continue
		}
		entries[e.Name] = e
	}
	return entries, nil
}

func strength(e sarama.ConfigEntry) int {
	switch e.Source {
	case sarama.SourceTopic:
		return 5
	case sarama.SourceDynamicBroker:
		return 4
	case sarama.SourceDynamicDefaultBroker:
		return 3
	case sarama.SourceStaticBroker:
		return 2
	case sarama.SourceDefault:
		return 1
	}
	return 0
}

func (s spec) checkShape(t Topic) []Problem {
	if t.Partitions == 1 {
		return nil
	}
	return []Problem{{Topic: s.topic, Setting: "partitions", Want: "1", Have: strconv.Itoa(t.Partitions), Source: "the topic", Fatal: true,
		Detail: "the order of statements is the order of one partition; make the topic anew"}}
}

func (s spec) checkConfigs(t Topic, entries map[string]sarama.ConfigEntry) []Problem {
	var problems []Problem
	add := func(setting, want string, e sarama.ConfigEntry, have string, fatal bool, why string) {
		problems = append(problems, Problem{Topic: s.topic, Setting: setting, Want: want, Have: have, Source: sourceName(e, have), Fatal: fatal, Detail: why})
	}
	for _, r := range s.rules {
		e, ok := entries[r.name]
		have := e.Value
		if !ok {
			// A setting that the broker does not list has the value 0 or none.
			have = "not set"
		}
		good := have == r.want
		if r.ok != nil {
			good = r.ok(have)
		}
		if !good {
			add(r.name, r.wanted(), e, have, r.fatal, r.why)
		}
	}
	e := entries["min.insync.replicas"]
	insync, err := strconv.Atoi(e.Value)
	switch {
	case err != nil:
	case insync > t.Replication:
		add("min.insync.replicas", "at most "+strconv.Itoa(t.Replication), e, e.Value, true, "more than there are replicas: nothing can be written")
	case t.Replication >= 3 && insync < 2:
		add("min.insync.replicas", "2", e, e.Value, false, "with less, an acked record can be lost with one broker")
	}
	if e, ok := entries["unclean.leader.election.enable"]; ok && strings.EqualFold(e.Value, "true") {
		add("unclean.leader.election.enable", "false", e, e.Value, false, "an unclean leader loses acked records")
	}
	return problems
}

// wanted says what would be right: the value, or the bound that it must keep.
func (r rule) wanted() string {
	n, err := strconv.ParseInt(r.want, 10, 64)
	if r.ok == nil || err != nil {
		return r.want
	}
	if r.ok(strconv.FormatInt(n+1, 10)) {
		return r.want + " or more"
	}
	return r.want + " or less"
}

func sourceName(e sarama.ConfigEntry, have string) string {
	switch e.Source {
	case sarama.SourceTopic:
		return "the topic"
	case sarama.SourceDynamicBroker, sarama.SourceDynamicDefaultBroker:
		return "a dynamic broker setting"
	case sarama.SourceStaticBroker:
		return "the broker's file"
	}
	return "default"
}
