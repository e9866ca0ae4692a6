package processor

import (
	"testing"

	"github.com/viewkeeper/viewkeeper"
)

func TestThinPath(t *testing.T) {
	w := newWorld(t)
	first := w.emit(create("a", 1)) // before anybody owns the catalog
	m := w.start("node-1", nil)
	d := w.decided(first)
	if d.Verdict != viewkeeper.Accepted || d.Version != 1 || d.Epoch == 0 || d.Owner != "node-1" || d.Engine == "" || d.SQL == "" || len(d.Rows) != 1 || d.At.IsZero() {
		t.Errorf("%+v", d)
	}
	if d := w.decided(w.emit(sql("main.b", "CREATE VIEW b AS SELECT nothing FROM a"))); d.Verdict != viewkeeper.Refused || d.Code != viewkeeper.CodeBind || d.Version != 2 {
		t.Errorf("%+v", d)
	}
	// The next statement sees the one before.
	if d := w.decided(w.emit(sql("main.b", "CREATE VIEW b AS SELECT n FROM a"))); d.Verdict != viewkeeper.Accepted {
		t.Errorf("%+v", d)
	}
	if d := w.decided(w.emit(viewkeeper.Submission{Key: "main.a", Tombstone: true})); d.Code != viewkeeper.CodeBreaksDependents {
		t.Errorf("%+v", d)
	}
	if d := w.decided(w.emit(viewkeeper.Submission{Key: "main.b", Tombstone: true})); d.Verdict != viewkeeper.Accepted || d.Version != 5 {
		t.Errorf("%+v", d)
	}
	s := m.waitOwner()
	f := w.table()
	if f.Version() != 5 || s.Version != 5 {
		t.Errorf("version %d in the table, %d in the status", f.Version(), s.Version)
	}
	if r, ok := f.Row(viewkeeper.MakeName("", "b")); !ok || r.Live() || r.Version != 5 || r.Epoch != s.Epoch {
		t.Errorf("%+v", r)
	}
	if r, ok := f.Row(viewkeeper.MakeName("", "a")); !ok || !r.Live() || r.Version != 1 {
		t.Errorf("%+v", r)
	}
}
