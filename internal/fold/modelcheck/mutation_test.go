package modelcheck

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite-traces", false, "write the traces again")

// TestEachRuleIsNeeded takes one rule out at a time: then there is a way to break what
// is promised, and the shortest one is the story in testdata. The bounds are those of
// TestTheRulesHold, where there is none with all rules in place.
func TestEachRuleIsNeeded(t *testing.T) {
	for _, m := range []struct {
		story string
		rule  Rules
		cfg   Config
	}{
		{"1 fence not read up to", Rule1Fence, twoOwners},
		{"1 a later fence is ignored", Rule1Stop, twoOwners},
		{"2 stale records count", Rule2Counting, twoOwners},
		{"3 rows not completed", Rule3Rows, twoOwners},
		{"3 decisions not completed", Rule3Decisions, twoOwners},
		{"4 judging from the committed offset", Rule4Offset, twoOwners},
		{"4 first decisions do not wait", Rule4First, twoOwners},
		{"4 rows count by themselves only", Rule4Content, twoOwners},
		{"4 the commit row with its rows", CommitFirst, twoOwners},
		{"5 answers on acks", Rule5Finish, twoOwners},
		{"6 nothing healed", Rule6Heal, twoOwners},
		{"6 compaction before healing", Rule6Lag, twoOwners},
		{"6 healed before read back", Rule6ReadBack, strangers},
		{"7 shown after a gap", Rule7Collect, healedRow},
		{"7 an end asked for before the gap", Rule7Again, healedRow},
		{"8 the later decision counts", Rule8Epoch, fourCommits},
		{"8 decisions from the topic only", Rule8Commit, twoOwners},
		{"9 away and not told", Rule9Through, away},
		{"9 purged before it is said", Rule9First, slept},
		{"9 slept before the fence", Rule9Resume, slept},
		{"9 purge of a former owner", Rule9Epoch, late},
	} {
		t.Run(m.story, func(t *testing.T) {
			cfg := m.cfg
			cfg.Without = m.rule
			checkStory(t, m.story, cfg)
		})
	}
}

// checkStory compares the shortest way to break a promise with the one in testdata.
func checkStory(t *testing.T, story string, cfg Config) {
	t.Helper()
	r := Check(cfg)
	if !r.Found() {
		t.Fatalf("%v", r)
	}
	path := filepath.Join("testdata", strings.ReplaceAll(story, " ", "_")+".txt")
	if *rewrite {
		if err := os.WriteFile(path, []byte(r.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.String(); got != string(want) {
		t.Errorf("another story; see whether it is as good, then -rewrite-traces:\n%s", got)
	}
}
