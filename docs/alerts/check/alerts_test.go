package check

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"go.yaml.in/yaml/v3"
)

// testFile is the form of promtool test rules, as far as it is used here.
type testFile struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	Tests              []struct {
		Name        string         `yaml:"name"`
		Interval    model.Duration `yaml:"interval"`
		InputSeries []struct {
			Series string `yaml:"series"`
			Values string `yaml:"values"`
		} `yaml:"input_series"`
		AlertRuleTest []struct {
			EvalTime  model.Duration `yaml:"eval_time"`
			Alertname string         `yaml:"alertname"`
			ExpAlerts []struct {
				ExpLabels map[string]string `yaml:"exp_labels"`
			} `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

// The rules fire when they must and not before, in Prometheus' own engine. Every rule
// has been seen to fire, or is one of a kind of which others have.
func TestAlerts(t *testing.T) {
	text, err := os.ReadFile("../viewkeeper.tests.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file testFile
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	byName := map[string]rulefmt.Rule{}
	for _, r := range rules(t) {
		byName[r.Alert] = r
	}
	p := parser.NewParser(parser.Options{})
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: p})
	fired := map[string]bool{}
	for _, test := range file.Tests {
		t.Run(test.Name, func(t *testing.T) {
			var db series
			for _, in := range test.InputSeries {
				lset, values, err := p.ParseSeriesDesc(in.Series + " " + in.Values)
				if err != nil {
					t.Fatal(err)
				}
				var samples []chunks.Sample
				for i, v := range values {
					if !v.Omitted {
						samples = append(samples, sample{int64(i) * time.Duration(test.Interval).Milliseconds(), v.Value})
					}
				}
				db = append(db, storage.NewListSeries(lset, samples))
			}
			for _, a := range test.AlertRuleTest {
				rule, ok := byName[a.Alertname]
				if !ok {
					t.Errorf("there is no alert %s", a.Alertname)
					continue
				}
				got := firing(t, engine, db, rule, time.Duration(file.EvaluationInterval), time.Duration(a.EvalTime))
				want := []string{}
				for _, e := range a.ExpAlerts {
					want = append(want, labels.FromMap(e.ExpLabels).String())
					fired[a.Alertname] = true
				}
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("%s after %s: %v, want %v", a.Alertname, a.EvalTime, got, want)
				}
			}
		})
	}
	// All that ask for a reason by its code are made alike.
	for name, rule := range byName {
		if !fired[name] && !isReason(rule) {
			t.Errorf("no test has seen %s fire", name)
		}
	}
}

func isReason(r rulefmt.Rule) bool {
	const head = `max by (catalog, node, instance, reason) ({__name__=~"viewkeeper_(degraded|not_ready|processor_reason)", reason=~"`
	return len(r.Expr) > len(head) && r.Expr[:len(head)] == head
}

// firing evaluates a rule at each interval up to a time, and gives the labels of what
// has been so for as long as the rule wants.
func firing(t *testing.T, engine *promql.Engine, db series, rule rulefmt.Rule, every, until time.Duration) []string {
	t.Helper()
	since := map[string]time.Duration{}
	for at := time.Duration(0); at <= until; at += every {
		query, err := engine.NewInstantQuery(context.Background(), db, nil, rule.Expr, time.UnixMilli(at.Milliseconds()))
		if err != nil {
			t.Fatal(err)
		}
		result := query.Exec(context.Background())
		vector, err := result.Vector()
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		now := map[string]time.Duration{}
		for _, s := range vector {
			b := labels.NewBuilder(s.Metric)
			b.Del(labels.MetricName)
			for k, v := range rule.Labels {
				b.Set(k, v)
			}
			key := b.Labels().String()
			now[key] = at
			if began, ok := since[key]; ok {
				now[key] = began
			}
		}
		since = now
		query.Close()
	}
	out := []string{}
	for key, began := range since {
		if until-began >= time.Duration(rule.For) {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// series is a storage in memory.
type series []storage.Series

func (s series) Querier(int64, int64) (storage.Querier, error) { return querier{s}, nil }

type querier struct{ series }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, s := range q.series {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Labels().Get(m.Name)) }) {
			found = append(found, s)
		}
	}
	return &set{list: found, at: -1}
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, fmt.Errorf("not asked for by a rule")
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, fmt.Errorf("not asked for by a rule")
}

func (querier) Close() error { return nil }

type set struct {
	list []storage.Series
	at   int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.list) }
func (s *set) At() storage.Series                { return s.list[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

type sample struct {
	t int64
	f float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.f }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
