package kafka

import (
	"strconv"

	"github.com/lovoo/goka"
)

// Topics gives the names of a catalog's topics and group.
type Topics struct{ Catalog string }

// Group is the processor's group. goka derives the table's name from it.
func (t Topics) Group() goka.Group { return goka.Group("viewkeeper." + t.Catalog) }

// Definitions is the topic that statements come in on.
func (t Topics) Definitions() string { return string(t.Group()) + "-definitions" }

// Table is the group table: commit row, rows, fences, heartbeat, known ids.
func (t Topics) Table() string { return string(goka.GroupTable(t.Group())) }

// tableSuffix is how goka ends the name of a group's table, and no other topic of a
// catalog does.
const tableSuffix = "-table"

// Decisions is the topic of all decisions, kept for ever by default.
func (t Topics) Decisions() string { return string(t.Group()) + "-decisions" }

// Nodes is the topic on which each node says what it has.
func (t Topics) Nodes() string { return string(t.Group()) + "-nodes" }

// All gives the four names.
func (t Topics) All() []string {
	return []string{t.Definitions(), t.Table(), t.Decisions(), t.Nodes()}
}

const (
	hourMillis = 60 * 60 * 1000
	dayMillis  = 24 * hourMillis
)

// rule is one setting of a topic: what CreateTopics sets and CheckTopics wants.
type rule struct {
	name string
	want string
	// ok judges a value that somebody set; nil means equal to want.
	ok func(have string) bool
	// fatal says that working with a wrong value loses or hides data.
	fatal bool
	why   string
}

// spec is one topic with its rules. The order is that of Topics.All.
type spec struct {
	topic string
	rules []rule
}

// specs is the table of DESIGN.md, "Topics of catalog C". Replication and
// min.insync.replicas depend on the cluster and are added by their users.
func (t Topics) specs() []spec {
	compact := rule{name: "cleanup.policy", want: "compact", fatal: true,
		why: "with delete, rows vanish by age; without compact, reading the topic takes longer and longer"}
	size := func(fatal bool) rule {
		return rule{name: "max.message.bytes", want: strconv.Itoa(MaxMessageBytes), ok: atLeast(MaxMessageBytes), fatal: fatal,
			why: "a record as large as the language allows must fit"}
	}
	segments := []rule{
		{name: "segment.bytes", want: strconv.Itoa(64 << 20), ok: atMost(64 << 20), why: "only closed segments are compacted"},
		{name: "segment.ms", want: strconv.Itoa(hourMillis), ok: atMost(hourMillis), why: "only closed segments are compacted"},
	}
	return []spec{
		{t.Definitions(), append([]rule{compact, size(false),
			{name: "min.compaction.lag.ms", want: strconv.Itoa(7 * dayMillis), ok: atLeast(7 * dayMillis), fatal: true,
				why: "a statement that is not yet judged must not be compacted away by a later one on the same key"},
		}, segments...)},
		{t.Table(), append([]rule{compact, size(true),
			{name: "min.compaction.lag.ms", want: strconv.Itoa(hourMillis), ok: atLeast(hourMillis), fatal: true,
				why: "until an owner has healed a row that a former owner wrote late, compaction must not take the good one"},
			{name: "message.timestamp.type", want: "LogAppendTime", fatal: true,
				why: "the compaction lag counts from the record's time, which a stopped owner would set wrongly"},
			{name: "delete.retention.ms", want: strconv.Itoa(dayMillis), ok: atLeast(dayMillis),
				why: "what says that an old drop was purged must be there for longer than a node needs to read the table from its beginning"},
		}, segments...)},
		{t.Decisions(), []rule{
			{name: "cleanup.policy", want: "delete", fatal: true, why: "every decision is kept, not only the last one of a statement id"},
			size(true),
			{name: "retention.ms", want: "-1", ok: anything, why: "history is kept for ever by default"},
			{name: "retention.bytes", want: "-1", ok: anything, why: "history is kept for ever by default"},
		}},
		{t.Nodes(), append([]rule{compact,
			{name: "message.timestamp.type", want: "LogAppendTime",
				why: "who lives is told by the records' age, and the nodes' clocks may differ"},
		}, segments...)},
	}
}

func anything(string) bool { return true }

func atLeast(n int64) func(string) bool {
	return func(have string) bool {
		v, err := strconv.ParseInt(have, 10, 64)
		return err == nil && v >= n
	}
}

func atMost(n int64) func(string) bool {
	return func(have string) bool {
		v, err := strconv.ParseInt(have, 10, 64)
		return err == nil && v > 0 && v <= n
	}
}
