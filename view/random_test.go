package view

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper/codec"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 takes one from the clock")

// Two routes to one answer: a node that followed everything as it came, and one that
// starts over the compacted table, have the same rows, and those that the owner
// means. Owners change, former owners write late, records are rubbish or tombstones,
// rows are written before their commit row is, the broker compacts in between.
func TestFollowingAndStartingAgree(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	old := *o // a former owner that still writes
	n := run(t, config(t, b.Addr(), "follower"), fast())
	n.ready()

	want := map[string]string{} // name to SQL
	names := []string{"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7"}
	for round := range 8 {
		for range 40 {
			name := names[rng.IntN(len(names))]
			switch k := rng.IntN(20); {
			case k < 12:
				c := change{name, ""}
				if rng.IntN(4) > 0 {
					c = view(name, fmt.Sprintf("SELECT a, %d AS n FROM t", rng.IntN(1000)))
				}
				o.accept("", c)
				want[name] = c.sql
			case k < 13:
				o.accept("") // a refusal
			case k < 15:
				// Others' records that count for nothing; the owner heals what they lie on.
				if old.epoch < o.epoch {
					old.version = o.version
					d, rows := old.decision("late", view(name, "SELECT 666 AS late FROM t"))
					if rng.IntN(2) == 0 {
						old.commit(d, rows)
					}
					old.put(codec.Row{Row: rows[0]})
					o.heal(want, name)
				}
			case k < 16:
				o.raw(topics.Table(), "main."+name, nil)
				o.heal(want, name)
			case k < 17:
				o.raw(topics.Table(), "#other", []byte("rubbish"))
			case k < 18:
				o.heartbeat()
			default:
				old = *o
				o.takeOver()
				o.heal(want, names...)
			}
		}
		if rng.IntN(2) == 0 {
			b.Cluster().Compact()
		}
		n.version(o.version)
		fresh := run(t, config(t, b.Addr(), fmt.Sprint("fresh", round)), fast())
		fresh.ready()
		fresh.version(o.version)
		for _, node := range []*running{n, fresh} {
			got := map[string]string{}
			for d := range node.Current().Definitions() {
				got[d.Row.Name.View] = d.Row.Definition.SQL
			}
			for _, name := range names {
				if got[name] != want[name] {
					t.Errorf("seed %d, round %d, %s: %s is %q, want %q", seed, round, node.cfg.NodeID, name, got[name], want[name])
				}
			}
		}
		if a, b := n.Status(), fresh.Status(); a.Digest != b.Digest || a.BuildDigest != b.BuildDigest || a.Version != b.Version {
			t.Errorf("seed %d, round %d: digests %s %s at %d and %s %s at %d", seed, round, a.Digest, a.BuildDigest, a.Version, b.Digest, b.BuildDigest, b.Version)
		}
		fresh.stop()
		if t.Failed() {
			return
		}
	}
}

// heal writes the owner's rows and commit row again, with its own epoch, as an owner
// does when somebody else's records lie on them.
func (o *owner) heal(want map[string]string, names ...string) {
	o.t.Helper()
	for _, name := range names {
		sql, known := want[name]
		if !known {
			continue
		}
		r := o.rows[name]
		r.Epoch = o.epoch
		if r.Live() != (sql != "") {
			o.t.Fatalf("the test lost track of %s", name)
		}
		o.put(codec.Row{Row: r})
	}
	if o.last != nil {
		o.put(o.last.WithEpoch(o.epoch))
	}
}
