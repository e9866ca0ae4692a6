package restore_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/restore"
	"github.com/viewkeeper/viewkeeper/processor"
)

// The table is deleted and made anew, empty. From each source it is put back as it was:
// the catalog at its version, each definition at its own; the node that served it takes
// the new table, with the digest that it had; the owner, who was there all the time and
// refused to work, goes on with a higher version and epoch; ids are known.
func TestALostTableIsPutBackFromEachSource(t *testing.T) {
	for _, kind := range []restore.Kind{restore.Export, restore.Copy, restore.Decided} {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t)
			w.own()
			w.follow()
			first := w.say("zero", "CREATE VIEW zero AS SELECT a FROM t").Version
			old := w.source(kind) // of version 1: the rest comes from the decisions
			last := w.story()
			before, rows := w.at(last), w.rows()
			epoch := w.owns().Epoch

			w.remake(w.topics.Names.Table())
			w.blocked()
			r := w.restore(old, false, false)
			if !r.Complete || r.Version != last || r.Definitions != len(rows) || r.From != kind || len(r.Lost) > 0 || r.StatementIDs < 9 {
				t.Errorf("%+v", r)
			}
			if kind != restore.Decided && (r.SourceVersion != first || r.Decisions != 8) {
				t.Errorf("%+v", r)
			}
			if got := w.rows(); !maps.Equal(got, rows) {
				t.Errorf("the table holds\n%v\nand held\n%v", got, rows)
			}
			if s := w.at(last); s.Digest != before.Digest || s.Version != last {
				t.Errorf("the node is at version %d with digest %s, and was at %d with %s", s.Version, s.Digest, last, before.Digest)
			}
			w.owns()
			if d := w.say("after", "CREATE VIEW after AS SELECT a FROM e"); d.Version != last+1 || d.Epoch <= epoch || d.Verdict != viewkeeper.Accepted {
				t.Errorf("the next decision: %+v", d)
			}
			if d := w.say("s1", "CREATE VIEW b AS SELECT a FROM a"); d.Version > last {
				t.Errorf("a statement sent again is judged again: %+v", d)
			}
			w.at(last + 1)
		})
	}
}

// Everything is gone but an export: a new cluster. Versions go on from the export's.
func TestAnExportFillsANewCluster(t *testing.T) {
	old := newWorld(t)
	old.own()
	old.story()
	export, rows := old.source(restore.Export), old.rows()

	w := newWorld(t)
	w.own() // and has begun an empty catalog
	w.owns()
	w.follow()
	r := w.restore(export, false, false)
	if !r.Complete || r.Version != 8 || r.Decisions != 0 {
		t.Errorf("%+v", r)
	}
	w.at(8)
	if got := w.rows(); !maps.Equal(got, rows) {
		t.Errorf("the table holds\n%v\nand held\n%v", got, rows)
	}
	if d := w.say("after", "CREATE VIEW after AS SELECT a FROM e"); d.Version != 9 || d.Offset != 0 || d.Verdict != viewkeeper.Accepted {
		t.Errorf("%+v", d)
	}
}

// Table and decisions are gone, and an old export is there. What came after it can't be
// known: it is refused, and says which statements they are. Where that is accepted the
// versions go on above all that was.
func TestAnOldExportAlone(t *testing.T) {
	w := newWorld(t)
	w.own()
	w.follow()
	w.say("zero", "CREATE VIEW zero AS SELECT a FROM t")
	export := w.source(restore.Export)
	last := w.story()
	w.at(last)
	w.stopOwn()
	w.remake(w.topics.Names.Table())
	w.remake(w.topics.Names.Decisions())

	k := w.look()
	p, err := restore.Make(w.ctx, k, export)
	w.must(err)
	if err := p.Allowed(k, true, false); err == nil || !strings.Contains(err.Error(), "8 statements from offset 1 on") {
		t.Errorf("%v", err)
	}
	if p.Report.Complete || len(p.Report.Lost) != 8 || p.Report.Lost[3].ID != "s3" || p.Report.Lost[3].Version != 5 || p.Report.Lost[3].SQL != "CREATE OR REPLACE VIEW a AS SELECT a, b FROM t" {
		t.Errorf("%+v", p.Report)
	}
	w.must(p.Allowed(k, false, true))
	w.must(w.put(k, p))
	if p.Report.Version != last+1 {
		t.Errorf("%+v", p.Report)
	}
	w.own()
	w.at(last + 1)
	if got := slices.Collect(maps.Keys(w.rows())); !slices.Equal(got, []string{"main.zero"}) {
		t.Errorf("%v", got)
	}
	// A lost statement, sent again.
	if d := w.say("s0", "CREATE VIEW a AS SELECT a FROM t"); d.Version != last+2 || d.Verdict != viewkeeper.Accepted {
		t.Errorf("%+v", d)
	}
}

// The definitions topic was made anew with the table: its offsets begin again, the
// versions do not.
func TestAllTopicsButTheDecisionsAreGone(t *testing.T) {
	w := newWorld(t)
	w.own()
	last := w.story()
	rows := w.rows()
	w.stopOwn()
	w.remake(w.topics.Names.Table())
	w.remake(w.topics.Names.Definitions())
	r := w.restore(w.source(restore.Decided), false, false)
	if !r.Complete || r.Version != last || !maps.Equal(w.rows(), rows) {
		t.Errorf("%+v", r)
	}
	w.own()
	if d := w.say("after", "CREATE VIEW after AS SELECT a FROM e"); d.Version != last+1 || d.Offset != 0 || d.Verdict != viewkeeper.Accepted {
		t.Errorf("%+v", d)
	}
}

// A table that is well is not written over by mistake.
func TestATableThatIsWellIsLeft(t *testing.T) {
	w := newWorld(t)
	w.own()
	w.follow()
	w.say("zero", "CREATE VIEW zero AS SELECT a FROM t")
	export := w.source(restore.Export)
	last := w.story()
	w.at(last)
	for _, s := range []*restore.Source{export, w.source(restore.Decided), w.source(restore.Copy)} {
		k := w.look()
		p, err := restore.Make(w.ctx, k, s)
		w.must(err)
		if err := p.Allowed(k, false, true); err == nil || !strings.Contains(err.Error(), "holds a catalog at version 9 and is well") {
			t.Errorf("%s: %v", s.Kind, err)
		}
	}

	// With the explicit word a running owner is stopped, and goes on from what is there
	// then. Nothing has changed, since the decisions make up for the export's age.
	epoch := w.owns().Epoch
	if r := w.restore(export, true, false); r.Changed != 0 || r.Version != last {
		t.Errorf("%+v", r)
	}
	if d := w.say("after", "CREATE VIEW after AS SELECT a FROM e"); d.Version != last+1 || d.Epoch <= epoch || d.Verdict != viewkeeper.Accepted {
		t.Errorf("%+v", d)
	}
	w.at(last + 1)
}

// With the decisions gone and both words said, an old export takes a catalog back that
// is well: at a new version, since the old one had other rows. Nodes follow.
func TestGoingBackToAnOldExport(t *testing.T) {
	w := newWorld(t)
	w.own()
	w.follow()
	w.say("zero", "CREATE VIEW zero AS SELECT a FROM t")
	export := w.source(restore.Export)
	last := w.story()
	w.at(last)
	w.remake(w.topics.Names.Decisions())
	r := w.restore(export, true, true)
	if r.Version <= last || r.Changed != 3 || r.Definitions != 1 {
		t.Errorf("%+v", r)
	}
	w.until("the old catalog", func(s viewkeeper.Status) bool { return s.Version == r.Version && s.Definitions == 1 })
	if d := w.say("after", "CREATE VIEW after AS SELECT a FROM zero"); d.Version != r.Version+1 || d.Verdict != viewkeeper.Accepted {
		t.Errorf("%+v", d)
	}
}

// Rubbish lay over a row, or over the commit row, while nobody owned, and compaction took
// what was under it. The owner misses it and says so. The table itself says that something
// is gone where it is a row; the decisions have it. Nodes that ran through it have then
// what they had.
func TestWhatCompactionTookIsPutBack(t *testing.T) {
	for _, c := range []struct {
		key    string
		reason string
		from   restore.Kind
		later  viewkeeper.Version // in place with other rows: a version more
	}{
		{"main.a", viewkeeper.ReasonTableDamaged, restore.Decided, 1},
		{"#commit", viewkeeper.ReasonTableBehind, restore.InTable, 0},
	} {
		t.Run(c.key, func(t *testing.T) {
			w := newWorld(t)
			w.own()
			w.follow()
			w.story()
			last := w.say("z", "CREATE VIEW z AS SELECT a FROM t").Version // the commit row holds this one only
			before, rows := w.at(last), w.rows()
			w.stopOwn()
			w.write(w.topics.Names.Table(), c.key, []byte("rubbish"))
			w.write(w.topics.Names.Table(), "stranger", []byte("the last batch is never compacted"))
			w.broker.Cluster().Compact()
			w.own()
			s, err := w.owner.WaitStatus(w.ctx, func(s processor.Status) bool { return s.Reasons[c.reason] != "" })
			if err != nil || !strings.Contains(s.Reasons[c.reason], "viewkeeper restore") {
				t.Fatalf("%v: %+v", err, s)
			}
			k := w.look()
			if c.from == restore.Decided {
				p, err := restore.Make(w.ctx, k, w.source(restore.InTable))
				w.must(err)
				if err := p.Allowed(k, true, false); err == nil || !strings.Contains(err.Error(), "gone") {
					t.Errorf("%v", err)
				}
			}
			r := w.restore(w.source(c.from), false, false)
			if !r.Complete || len(r.Damage) != 1 || r.Version != last+c.later {
				t.Errorf("%+v", r)
			}
			w.owns()
			if got := w.rows(); !maps.Equal(got, rows) {
				t.Errorf("the table holds\n%v\nand held\n%v", got, rows)
			}
			if s := w.at(r.Version); s.Digest != before.Digest {
				t.Errorf("the digest was %s and is %s", before.Digest, s.Digest)
			}
			if d := w.say("after", "CREATE VIEW after AS SELECT a FROM e"); d.Version != r.Version+1 || d.Verdict != viewkeeper.Accepted {
				t.Errorf("%+v", d)
			}
			w.at(r.Version + 1)
			if k := w.look(); len(k.Table.Unreadable()) > 0 || k.Table.Fold.Damaged() {
				t.Errorf("left: %v", k.Table.Unreadable())
			}
		})
	}
}

// Rubbish in a table that is otherwise well, with a running owner: what lies over rows is
// healed by it, and the repair takes the rest away. Nothing changes.
func TestARepairInPlace(t *testing.T) {
	w := newWorld(t)
	w.own()
	w.follow()
	last := w.story()
	before, rows := w.at(last), w.rows()
	for _, key := range []string{"main.a", "#commit", "#ids/0000", "#lease", "stranger", "main.unknown", "#fence/none"} {
		w.write(w.topics.Names.Table(), key, []byte("rubbish"))
	}
	r := w.restore(w.source(restore.InTable), false, false)
	if !r.Complete || r.Version != last || r.Changed != 0 || len(r.Damage) != 0 {
		t.Errorf("%+v", r)
	}
	if d := w.say("after", "CREATE VIEW after AS SELECT a FROM e"); d.Version != last+1 {
		t.Errorf("%+v", d)
	}
	k := w.look()
	if left := k.Table.Unreadable(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	now := w.rows()
	delete(now, "main.after")
	if !maps.Equal(now, rows) {
		t.Errorf("the table holds\n%v", now)
	}
	if before.Version != last {
		t.Errorf("%+v", before)
	}
	p, err := restore.Make(w.ctx, k, w.source(restore.InTable))
	w.must(err)
	if !p.Nothing(k) {
		t.Errorf("there is something to repair still: %+v", p.Report)
	}
}

// A stranger wrote a row again with its version and another text: it is the row that is
// put back, not its version alone.
func TestARowWithAnotherTextIsPutBack(t *testing.T) {
	w := newWorld(t)
	w.own()
	w.follow()
	w.story()
	last := w.say("z", "CREATE VIEW z AS SELECT a FROM t").Version // the commit row holds this one only
	before, rows := w.at(last), w.rows()
	w.stopOwn()
	name, err := viewkeeper.ParseName("a")
	w.must(err)
	row, _ := w.look().Table.Fold.Row(name)
	forged := *row.Definition
	forged.SQL = "CREATE VIEW a AS SELECT 1 AS a, 2 AS b FROM t"
	row.Definition = &forged
	key, value := codec.EncodeRecord(codec.Row{Row: row})
	w.write(w.topics.Names.Table(), key, value)
	w.own()
	if s, err := w.owner.WaitStatus(w.ctx, func(s processor.Status) bool { return s.Reasons[viewkeeper.ReasonTableDamaged] != "" }); err != nil {
		t.Fatalf("%v: %+v", err, s)
	}
	r := w.restore(w.source(restore.Decided), false, false)
	if !r.Complete || r.Changed != 1 || r.Version != last+1 {
		t.Errorf("%+v", r)
	}
	w.owns()
	if got := w.rows(); !maps.Equal(got, rows) {
		t.Errorf("the table holds\n%v\nand held\n%v", got, rows)
	}
	if s := w.at(r.Version); s.Digest != before.Digest {
		t.Errorf("the digest was %s and is %s", before.Digest, s.Digest)
	}
}

// What is lost for good is gone everywhere, also from nodes that ran through it.
func TestWhatIsLostIsGoneEverywhere(t *testing.T) {
	for what, rubbish := range map[string][]byte{"rubbish": []byte("rubbish"), "a tombstone": nil} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			w.own()
			w.follow()
			w.story()
			w.say("y", "CREATE VIEW y AS SELECT a FROM t")
			last := w.say("z", "CREATE VIEW z AS SELECT a FROM t").Version // the commit row holds this one only
			w.at(last)
			w.stopOwn()
			w.write(w.topics.Names.Table(), "main.y", rubbish)
			w.write(w.topics.Names.Table(), "stranger", []byte("the last batch is never compacted"))
			w.broker.Cluster().Compact()
			w.own()
			if s, err := w.owner.WaitStatus(w.ctx, func(s processor.Status) bool { return s.Reasons[viewkeeper.ReasonTableDamaged] != "" }); err != nil {
				t.Fatalf("%v: %+v", err, s)
			}
			r := w.restore(w.source(restore.InTable), false, true)
			w.owns()
			want := w.rows()
			if _, there := want["main.y"]; there {
				t.Fatalf("it is not lost: %v", want)
			}
			s := w.at(r.Version)
			if s.Definitions != len(want) {
				t.Errorf("the node has %d definitions and the table %d", s.Definitions, len(want))
			}
			if d := w.say("after", "CREATE VIEW y AS SELECT a FROM e"); d.Verdict != viewkeeper.Accepted {
				t.Errorf("%+v", d)
			}
		})
	}
}
