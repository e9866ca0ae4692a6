package viewkeeper_test

import (
	"testing"

	"github.com/viewkeeper/viewkeeper"
)

func TestCompareNodes(t *testing.T) {
	node := func(name string, v viewkeeper.Version, digest, base string) viewkeeper.Status {
		return viewkeeper.Status{Node: name, Version: v, Digest: digest, BaseDigest: base}
	}
	type verdict struct {
		lag                   viewkeeper.Version
		lagging, digest, base bool
	}
	for _, c := range []struct {
		what  string
		nodes []viewkeeper.Status
		known viewkeeper.FleetView
		want  []verdict
	}{
		{"all well", []viewkeeper.Status{node("a", 7, "x", "b"), node("b", 7, "x", "b")}, viewkeeper.FleetView{Version: 7, Before: 7, BaseDigest: "b"},
			[]verdict{{}, {}}},
		{"one a moment behind", []viewkeeper.Status{node("a", 7, "x", "b"), node("b", 6, "y", "b")}, viewkeeper.FleetView{Version: 7, Before: 6},
			[]verdict{{}, {lag: 1}}},
		{"one that stands still, of which only the table knows", []viewkeeper.Status{node("a", 3, "x", "b")}, viewkeeper.FleetView{Version: 9, Before: 8},
			[]verdict{{lag: 6, lagging: true}}},
		{"a minority", []viewkeeper.Status{node("a", 7, "x", "b"), node("b", 7, "y", "b"), node("c", 7, "x", "b")}, viewkeeper.FleetView{},
			[]verdict{{}, {digest: true}, {}}},
		{"no majority, and one that says nothing", []viewkeeper.Status{node("a", 7, "x", "b"), node("b", 7, "y", "b"), node("c", 7, "", "b")}, viewkeeper.FleetView{},
			[]verdict{{digest: true}, {digest: true}, {}}},
		{"other rows at other versions, and before the first", []viewkeeper.Status{node("a", 7, "x", "b"), node("b", 8, "y", "b"), node("c", 0, "z", ""), node("d", 0, "", "")}, viewkeeper.FleetView{BaseDigest: "b"},
			[]verdict{{lag: 1}, {}, {lag: 8}, {lag: 8}}},
		{"another base than the owner's", []viewkeeper.Status{node("a", 7, "x", "b"), node("b", 7, "x", "c")}, viewkeeper.FleetView{BaseDigest: "c"},
			[]verdict{{base: true}, {}}},
	} {
		for i, n := range viewkeeper.CompareNodes(c.nodes, c.known) {
			got := verdict{n.Lag, n.Lagging, n.DigestDiffers, n.BaseDiffers}
			if n.Node != c.nodes[i].Node || got != c.want[i] {
				t.Errorf("%s: node %s is %+v, want %+v", c.what, n.Node, got, c.want[i])
			}
		}
	}
}
