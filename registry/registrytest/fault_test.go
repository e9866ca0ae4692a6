package registrytest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// TestFaults breaks the planner at call 0, 1, 2, ... of every statement of a
// story. Whatever fails, the catalog is as before or as after, never between; a
// statement that was not decided gets, when it comes again, the decision that it
// would have had; and all that follows is decided as if nothing had been.
func TestFaults(t *testing.T) {
	faults := map[string]registrytest.FaultPlanner{
		"lost":            {Err: &registry.LostError{Detail: "killed by the test"}},
		"lost late":       {Err: &registry.LostError{Detail: "killed by the test"}, Late: true},
		"lost twice":      {Err: &registry.LostError{Detail: "killed by the test"}, Times: 2},
		"lost for long":   {Err: &registry.LostError{Detail: "killed by the test"}, Times: 6},
		"timeout":         {Err: &registry.LostError{Detail: "killed by the test", Timeout: true}},
		"cancelled":       {Err: context.Canceled},
		"cancelled late":  {Err: context.Canceled, Late: true},
		"deadline":        {Err: context.DeadlineExceeded},
		"something else":  {Err: errors.New("the socket is gone")},
		"something twice": {Err: errors.New("the socket is gone"), Times: 2},
	}
	for name, f := range faults {
		t.Run(name, func(t *testing.T) { faultsIn(t, f) })
	}
}

// story has one of each kind of statement, and each kind of outcome.
var story = []string{
	"CREATE VIEW a AS SELECT a, d FROM u",
	"BEGIN; CREATE VIEW b AS SELECT a, d FROM a; CREATE VIEW c AS SELECT d FROM b; CREATE VIEW e AS SELECT * FROM a; COMMIT",
	"CREATE OR REPLACE VIEW a AS SELECT a, d::BIGINT AS d FROM u",
	"CREATE OR REPLACE VIEW a AS SELECT a FROM u", // refused, with collateral
	"CREATE OR REPLACE VIEW a AS SELECT a, d::BIGINT AS d FROM u",
	"ALTER VIEW a RENAME TO first_one",
	"COMMENT ON VIEW b IS 'note'",
	"CREATE VIEW bad AS SELECT nope FROM b",
	"DROP VIEW b",
	"DROP VIEW b CASCADE",
	"CREATE VIEW z AS SELECT * FROM e",
}

// stage is a catalog over a planner that can be broken.
type stage struct {
	fault   *registrytest.FaultPlanner
	catalog *registry.Catalog
}

func newStage(t *testing.T, f registrytest.FaultPlanner) *stage {
	f.Planner, f.At = registrytest.NewModel(registrytest.BaseRelations()...), -1
	s := &stage{fault: &f}
	base, err := registry.NewBase(t.Context(), s.fault, registry.BaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s.catalog, err = registry.LoadCatalog(t.Context(), base, nil, registry.CatalogOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stage) judge(t *testing.T, i int) (*registry.Outcome, error) {
	return s.catalog.Judge(t.Context(), viewkeeper.Submission{
		Key: fmt.Sprint("k", i), ID: fmt.Sprint("t:", i), SQL: story[i], Offset: int64(i),
	})
}

func (s *stage) digests() string {
	f := s.catalog.Snapshot()
	return f.Digest() + f.BuildDigest()
}

func faultsIn(t *testing.T, f registrytest.FaultPlanner) {
	// What happens when nothing fails: the decision and the catalog after each.
	ref := newStage(t, f)
	var decisions, digests []string
	empty := ref.digests()
	for i := range story {
		out, err := ref.judge(t, i)
		if err != nil {
			t.Fatal(err)
		}
		decisions, digests = append(decisions, asJSON(t, out.Decision)), append(digests, ref.digests())
	}
	hits := 0
	for i := range story {
		before := empty
		if i > 0 {
			before = digests[i-1]
		}
		for n := 0; ; n++ {
			s := newStage(t, f)
			for k := range i {
				if _, err := s.judge(t, k); err != nil {
					t.Fatal(err)
				}
			}
			s.fault.Arm(n)
			out, err := s.judge(t, i)
			hit := s.fault.Hit()
			s.fault.Arm(-1)
			what := fmt.Sprintf("%q with a fault in %s", story[i], hit)
			engine := err == nil && (out.Decision.Code == viewkeeper.CodeEngineKilled || out.Decision.Code == viewkeeper.CodeEngineTimeout)
			switch now := s.digests(); {
			case (err != nil || engine) && now != before:
				t.Errorf("%s: not decided or refused, and yet the catalog changed", what)
			case err == nil && !engine && (asJSON(t, out.Decision) != decisions[i] || now != digests[i]):
				t.Errorf("%s: decided otherwise: %s %s", what, said(out.Decision), out.Decision.Message)
			}
			if !engine {
				s.goesOn(t, what, i, err != nil, decisions)
			}
			if hit == "" {
				break // the statement makes no more calls than this
			}
			hits++
		}
	}
	if hits < 2*len(story) {
		t.Errorf("only %d faults were met", hits)
	}
}

// goesOn judges the statement again when it was not decided, and all that follow.
func (s *stage) goesOn(t *testing.T, what string, i int, again bool, decisions []string) {
	t.Helper()
	if !again {
		i++
	}
	for ; i < len(story); i++ {
		out, err := s.judge(t, i)
		if err != nil {
			t.Errorf("%s: then %q: %v", what, story[i], err)
			return
		}
		if asJSON(t, out.Decision) != decisions[i] {
			t.Errorf("%s: then %q is decided otherwise: %s", what, story[i], said(out.Decision))
			return
		}
	}
}
