package processor

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// verify compares what lies in the topics with what the law says of these statements,
// one after the other, in one process that never stops: each has its decision, with
// one content however often it was written; the table holds the catalog; nothing is
// left to complete or to heal.
func (w *world) verify(statements []viewkeeper.Submission) {
	w.t.Helper()
	want, rows := w.law(statements)
	all := w.decisions(fmt.Sprintf("%d decisions", len(want)), func(all []decision) bool {
		got := byOffset(all)
		for offset := range want {
			if _, ok := got[offset]; !ok {
				return false
			}
		}
		return true
	})
	for _, d := range all {
		if content(d.Decision) != content(want[d.Offset]) {
			w.t.Errorf("offset %d was decided as\n%s\nand the law says\n%s", d.Offset, content(d.Decision), content(want[d.Offset]))
		}
	}
	f := w.settled(viewkeeper.Version(len(statements)))
	if f.Version() != viewkeeper.Version(len(statements)) {
		w.t.Errorf("the table is at version %d after %d statements", f.Version(), len(statements))
	}
	for name, r := range rows {
		got, ok := f.Row(name)
		if !ok || got.Version != r.Version || got.Live() != r.Live() || r.Live() && *got.Definition != *r.Definition {
			w.t.Errorf("the table has %+v, the law %+v", got, r)
		}
	}
}

// law judges statements without any Kafka.
func (w *world) law(statements []viewkeeper.Submission) (map[int64]viewkeeper.Decision, map[viewkeeper.Name]viewkeeper.Row) {
	w.t.Helper()
	base, err := registry.NewBase(w.ctx, registrytest.NewModel(registrytest.BaseRelations()...), registry.BaseOptions{Log: w.log})
	w.must(err)
	catalog, err := registry.LoadCatalog(w.ctx, base, nil, registry.CatalogOptions{Epoch: 1, Owner: "law"})
	w.must(err)
	topicID, err := w.admin.TopicID(w.ctx, w.topics.Definitions())
	w.must(err)
	decisions, rows, seen := map[int64]viewkeeper.Decision{}, map[viewkeeper.Name]viewkeeper.Row{}, map[string]bool{}
	for i, s := range statements {
		m := codec.EncodeSubmission(s)
		m.Offset = int64(i)
		s = codec.DecodeSubmission(topicID, m)
		if seen[s.ID] {
			continue // these tests repeat statements with the same text only
		}
		seen[s.ID] = true
		out, err := catalog.Judge(w.ctx, s)
		w.must(err)
		decisions[s.Offset] = out.Decision
		for _, r := range out.Rows {
			rows[r.Name] = r
		}
	}
	return decisions, rows
}

// content is a decision without what depends on when and by whom it was made.
func content(d viewkeeper.Decision) string {
	d.Epoch, d.Owner = 0, ""
	d.At = time.Time{}
	d.Normalize()
	b, _ := json.Marshal(d)
	return string(b)
}

// settled waits until the table is at a version, and everything is written that is to be
// completed or healed: a decision can be there before the rows of its flight, and a
// statement that repeats another has none and may come alone after it.
func (w *world) settled(least viewkeeper.Version) *fold.Fold {
	w.t.Helper()
	for {
		f := w.table()
		if f.Version() >= least && len(f.Heal(f.Epoch())) == 0 && len(f.Completion(f.Epoch())) == 0 {
			return f
		}
		if w.ctx.Err() != nil {
			w.t.Fatalf("nothing is settled at version %s; version %s of the table is", least, f.Version())
		}
	}
}
