package view

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// What the nodes of a fleet write and read of each other grows with the square of their
// number: those of a large one write less often and read together, and still each knows
// all that the others say.
func TestALargeFleetSaysLess(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const least = 250 * time.Millisecond
	for nodes, want := range map[int][2]time.Duration{
		0: {least, 0}, 1: {least, 0}, 25: {least, 0},
		50: {2 * least, 100 * time.Millisecond}, 100: {4 * least, 200 * time.Millisecond}, 1000: {40 * least, 250 * time.Millisecond},
	} {
		f := newFleet("n0", 10*time.Second)
		var all []viewkeeper.Status
		for i := range nodes {
			s := viewkeeper.Status{Node: fmt.Sprintf("n%04d", i), HTTP: fmt.Sprint("host-", i), Version: viewkeeper.Version(i / 2), Digest: fmt.Sprint("d", i%2), Ready: true}
			all = append(all, s)
			value, _ := json.Marshal(s)
			f.read(s.Node, value, at, at)
			for k := range value {
				value[k] = 0 // the reader of the topic may use its memory again
			}
		}
		if got := [2]time.Duration{f.publishPause(least, at), f.gather(at)}; got != want {
			t.Errorf("%d nodes: %v, want %v", nodes, got, want)
		}
		if nodes == 0 {
			continue
		}
		for range 2 { // when it is decoded, and when it has been
			if got, _ := f.members(at); !reflect.DeepEqual(clean(got), clean(all)) {
				t.Fatalf("%d nodes: %v", nodes, got)
			}
		}
		if _, top := f.size(at); top != viewkeeper.Version((nodes-1)/2) {
			t.Errorf("%d nodes: the highest version is %d", nodes, top)
		}
		reached, missing, _ := f.having(2, at)
		if !slices.IsSorted(reached) || !slices.IsSorted(missing) || len(reached) != max(0, nodes-4) || len(missing) != min(4, nodes) {
			t.Errorf("%d nodes: version 2 is at %v and not at %v", nodes, reached, missing)
		}
		if got := f.differs("n0004", 2, "d0", at); nodes > 5 && got != "n0005" || nodes < 5 && got != "" {
			t.Errorf("%d nodes: %q differs", nodes, got)
		}
		if f.differs("n0000", 0, "d0", at) != "" || f.differs("n0005", 2, "", at.Add(time.Minute)) != "" {
			t.Error("nothing, or who is gone, differs")
		}
	}
}

// clean makes statuses comparable: absent and empty lists are one after decoding.
func clean(all []viewkeeper.Status) (out []string) {
	for _, s := range all {
		out = append(out, fmt.Sprint(s.Node, s.HTTP, s.Version, s.Digest, s.Ready))
	}
	return out
}
