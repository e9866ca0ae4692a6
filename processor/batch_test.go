package processor

import (
	"encoding/json"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

func TestCommitRow(t *testing.T) {
	a, b := viewkeeper.MakeName("", "a"), viewkeeper.MakeName("", "b")
	row := func(n viewkeeper.Name, v viewkeeper.Version) viewkeeper.Row {
		return viewkeeper.Row{Name: n, Version: v, Definition: &viewkeeper.Definition{Name: n}}
	}
	before := &codec.Commit{
		Version: 4, Epoch: 9, Owner: "me", DefinitionsTopic: "id", VersionBase: 3, EpochBase: 2, PurgedThrough: 1,
		Decisions: []viewkeeper.Decision{{StatementID: "old"}}, Rows: []viewkeeper.Row{row(b, 4)}, IDs: []codec.ID{{ID: "old"}},
		Format: 2, Extra: map[string]json.RawMessage{"later": []byte("1"), "decisions": []byte("[{}]")},
	}
	got := commitRow(before, []*item{
		{offset: 3}, // decided before
		{version: 5, decision: &viewkeeper.Decision{StatementID: "x"}, rows: []viewkeeper.Row{row(b, 5), row(a, 5)}, id: &codec.ID{ID: "x", Version: 5}},
		{version: 6}, // repeated
		{version: 7, decision: &viewkeeper.Decision{StatementID: "y"}, rows: []viewkeeper.Row{row(b, 7)}},
		{version: 8},
	})
	if got.Version != 8 || got.Epoch != 9 || got.VersionBase != 3 || got.EpochBase != 2 || got.PurgedThrough != 1 || got.DefinitionsTopic != "id" {
		t.Errorf("%+v", got)
	}
	if len(got.Decisions) != 2 || len(got.IDs) != 1 || len(got.Rows) != 2 || got.Rows[0].Name != a || got.Rows[1].Version != 7 || got.Rows[0].Epoch != 9 {
		t.Errorf("%+v", got)
	}
	if got.Format != 2 || len(got.Extra) != 1 || got.Extra["later"] == nil || len(before.Extra) != 2 {
		t.Errorf("what a newer program wrote: format %d, %v", got.Format, got.Extra)
	}
}
