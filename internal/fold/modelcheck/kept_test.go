package modelcheck

import "testing"

// TestWhatIsNotNeededHere says of two parts of rules that nothing breaks without them,
// within the bounds: see DESIGN.md for what they are for. If one is needed one day, its
// story belongs to TestEachRuleIsNeeded.
func TestWhatIsNotNeededHere(t *testing.T) {
	for name, rule := range map[string]Rules{"held rows": Rule4Held, "names in late commit rows": Rule6Named} {
		t.Run(name, func(t *testing.T) {
			cfg := twoOwners
			cfg.Batches, cfg.Without = []string{"+a"}, rule
			if r := Check(cfg); r.Found() || !r.Exhausted {
				t.Errorf("%v", r)
			}
		})
	}
}

// TestFencesAreKept: a fence that goes while a late record lies behind it makes that
// record count.
func TestFencesAreKept(t *testing.T) {
	checkStory(t, "fences are kept", Config{Owners: 3, Swift: true, Commits: 1, Batches: []string{"+a"}, Compactions: 1, Strangers: 1, Strange: []string{"#fence"}})
}
