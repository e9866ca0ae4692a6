package tablecopy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
)

// BenchmarkStart is the reading of a copy of 10,000 definitions, fold included, which
// is what a start costs before anything is planned.
func BenchmarkStart(b *testing.B) {
	dir := Dir(b.TempDir())
	s, err := Create(dir)
	if err != nil {
		b.Fatal(err)
	}
	f, sel := fold.New(), NewSelection()
	offset := int64(0)
	add := func(r codec.Record) {
		_, value := codec.EncodeRecord(r)
		sel.Add(offset, codec.DecodeRecord(r.Key(), value), value, f.Add(offset, r))
		offset++
	}
	add(&codec.Fence{Nonce: "a"})
	const count = 10000
	for i := range count {
		v := viewkeeper.Version(i + 1)
		name := viewkeeper.MakeName("", fmt.Sprintf("v%05d", i))
		sql := fmt.Sprintf("CREATE VIEW v%05d AS SELECT a, b, %s FROM t", i, strings.Repeat("a + 1, ", 60)+"1 AS n")
		r := viewkeeper.Row{Name: name, Version: v, Epoch: 1, Definition: &viewkeeper.Definition{Name: name, Kind: viewkeeper.KindView, SQL: sql, ID: v}}
		add(&codec.Commit{Version: v, Epoch: 1, Rows: []viewkeeper.Row{r}})
		add(codec.Row{Row: r})
	}
	m := at(offset - 1)
	if err := s.Write(m, sel.Take()); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s, _, records, err := Open(dir)
		if err != nil {
			b.Fatal(err)
		}
		f, sel := fold.New(), NewSelection()
		for _, r := range records {
			rec := codec.DecodeRecord(r.Key, r.Value)
			sel.Loaded(r.Offset, rec, f.Add(r.Offset, rec))
		}
		if f.Version() != count {
			b.Fatal(f.Version())
		}
		_ = s.Close()
	}
}
