package view

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper/codec"
)

var seedFlag = flag.Uint64("seed", 0, "seed of the random tests; 0 takes one from the clock")

// Four routes to one answer: a node that followed everything as it came, one that
// starts over the compacted table, one that starts from its copy, and one that starts
// from that copy's files as they lay there while it was written, as after kill -9,
// with a byte flipped now and then; they have the same rows, and those that the owner
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

	dir := t.TempDir()
	copying := run(t, withCopy(t, b.Addr(), dir), fast())
	copying.ready()
	copying.copied()

	want := map[string]string{} // name to SQL
	names := []string{"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7"}
	for round := range 8 {
		killed := t.TempDir()
		stopAt, killAt := rng.IntN(40), rng.IntN(40)
		for i := range 40 {
			if i == stopAt {
				copying.stop()
			}
			if i == killAt {
				takeFiles(t, filepath.Join(dir, "table"), filepath.Join(killed, "table"), rng)
			}
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
		copying = run(t, withCopy(t, b.Addr(), dir), fast())
		again := withCopy(t, b.Addr(), killed)
		again.NodeID = "killed"
		other := run(t, again, fast())
		nodes := []*running{n, fresh, copying, other}
		for _, node := range nodes[2:] {
			node.ready()
			node.version(o.version)
		}
		for _, node := range nodes {
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
		for _, node := range nodes[1:] {
			if a, b := n.Status(), node.Status(); a.Digest != b.Digest || a.BuildDigest != b.BuildDigest || a.Version != b.Version {
				t.Errorf("seed %d, round %d, %s: digests %s %s at %d and %s %s at %d", seed, round, b.Node, a.Digest, a.BuildDigest, a.Version, b.Digest, b.BuildDigest, b.Version)
			}
		}
		fresh.stop()
		other.stop()
		if t.Failed() {
			return
		}
	}
}

// takeFiles copies the files of a directory as they are, one after the other, while
// somebody may be writing them, and flips a byte of one of them in one of four cases.
func takeFiles(t *testing.T, from, to string, rng *rand.Rand) {
	t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(from, f.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // it was replaced meanwhile
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(content) > 0 && rng.IntN(4*len(files)) == 0 {
			content[rng.IntN(len(content))] ^= 1 << rng.IntN(8)
		}
		if err := os.WriteFile(filepath.Join(to, f.Name()), content, 0o644); err != nil {
			t.Fatal(err)
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
