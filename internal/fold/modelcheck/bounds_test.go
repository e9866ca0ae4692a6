package modelcheck

import (
	"os"
	"testing"
	"time"
)

// bounds are small enough that all of their states are seen. Each looks at one corner,
// with as much as that leaves room for. MODEL=large has more of each, for hours.
func bounds() map[string]Config {
	if os.Getenv("MODEL") == "large" {
		return map[string]Config{
			"two owners":              {Owners: 2, Commits: 3, Batches: []string{"+a", "-a", "."}, Compactions: 1},
			"three owners":            {Owners: 3, Swift: true, Commits: 2, Batches: []string{"+a", "."}, Compactions: 1},
			"sets, in any order":      {Owners: 2, Swift: true, Commits: 2, Batches: []string{"+a+b", "-a"}, AnyOrder: true, Compactions: 1},
			"statement ids":           {Owners: 2, Swift: true, Commits: 3, Batches: []string{"+a", "."}, Compactions: 1, IDs: true},
			"a slow node":             {Owners: 2, Swift: true, Commits: 2, Batches: []string{"+a"}, Compactions: 2, Follower: true},
			"a zombie's purge":        {Owners: 2, Swift: true, Commits: 4, Script: [][]string{{"+a"}, {"-a"}, {"."}, {"+a", "-a"}}, Purges: 2, Compactions: 1},
			"a node that was away":    {Owners: 2, Swift: true, Commits: 4, Script: [][]string{{"+a"}, {"-a"}, {"."}, {"."}}, Purges: 1, Expiries: 1, Follower: true},
			"tombstones of strangers": {Owners: 2, Swift: true, Commits: 2, Batches: []string{"+a"}, Compactions: 1, Strangers: 2, Strange: []string{"#commit", "main.a"}},
		}
	}
	return map[string]Config{
		"two owners, any step apart": twoOwners,
		"three owners":               {Owners: 3, Swift: true, Commits: 1, Batches: []string{"+a", "."}, Compactions: 1},
		"sets, in any order":         {Owners: 2, Swift: true, Commits: 1, Batches: []string{"+a+b", "-a."}, AnyOrder: true, Compactions: 1},
		"statement ids":              {Owners: 2, Swift: true, Commits: 2, Batches: []string{"+a"}, IDs: true},
		"four commits":               fourCommits,
		"a slow node":                {Owners: 2, Swift: true, Commits: 1, Batches: []string{"+a"}, Compactions: 1, Follower: true},
		"a healed row":               healedRow,
		"tombstones of strangers":    strangers,
		"a node that was away":       away,
		"an owner that slept":        slept,
		"a zombie's purge":           late,
		"a node, two compactions":    {Owners: 1, Swift: true, Commits: 2, Batches: []string{"+a", "-a"}, Compactions: 2, Follower: true},
	}
}

var (
	twoOwners   = Config{Owners: 2, Commits: 2, Batches: []string{"+a", "."}, Compactions: 1}
	fourCommits = Config{Owners: 2, Swift: true, Commits: 4, Batches: []string{"."}}
	healedRow   = Config{Owners: 1, Swift: true, Commits: 2, Batches: []string{"+a", "."}, Compactions: 1, Follower: true, Strangers: 1, Strange: []string{"main.a"}}
	away        = Config{Owners: 1, Swift: true, Commits: 4, Script: [][]string{{"+a"}, {"-a"}, {"."}, {"."}}, Purges: 1, Expiries: 1, Follower: true}
	slept       = Config{Owners: 2, Commits: 3, Script: [][]string{{"+a"}, {"-a"}, {"."}}, Purges: 1, Expiries: 1}
	late        = Config{Owners: 2, Swift: true, Commits: 3, Script: [][]string{{"-a"}, {"."}, {"+a"}}, Purges: 1}
	strangers   = Config{Owners: 2, Swift: true, Commits: 2, Batches: []string{"+a"}, Strangers: 1, Strange: []string{"#commit", "main.a"}}
)

// TestTheRulesHold sees every state within the bounds.
func TestTheRulesHold(t *testing.T) {
	for name, cfg := range bounds() {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			cfg.Most = 400_000
			r := Check(cfg)
			t.Logf("%v, %v", r, time.Since(began).Round(time.Millisecond))
			if r.Found() || !r.Exhausted {
				t.Errorf("%+v", cfg)
			}
		})
	}
}
