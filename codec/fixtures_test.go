package codec

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

var rewrite = flag.Bool("rewrite", false, "write the fixtures of the current format again")

// samples has one of each record, with every field set.
func samples() map[string]Record {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	name := viewkeeper.MakeName("ops", "daily")
	gone := viewkeeper.MakeName("", "old")
	comment := "per day <&>"
	def := &viewkeeper.Definition{Name: name, Kind: viewkeeper.KindView, SQL: "CREATE VIEW ops.daily AS SELECT 1 AS n", Comment: &comment, ID: 7}
	row := viewkeeper.Row{Name: name, Version: 42, Epoch: 9, Definition: def, Format: Format1}
	drop := viewkeeper.Row{Name: gone, Version: 41, Epoch: 9, Format: Format1}
	d := viewkeeper.Decision{
		StatementID: "3f0c", Version: 42, Offset: 41, Verdict: viewkeeper.Accepted, Message: "replaced ops.daily",
		Changed: []viewkeeper.Change{{Name: name, Action: viewkeeper.ActionReplaced,
			ColumnsBefore: []viewkeeper.Column{{Name: "n", Type: "BIGINT"}}, ColumnsAfter: []viewkeeper.Column{{Name: "n", Type: "INTEGER"}}}},
		Author: "jane@example.org", Reason: "narrower", At: at, Owner: "node-1", Epoch: 9, Engine: "model 1", BaseDigest: "b0",
		SQL:  "CREATE OR REPLACE VIEW ops.daily AS SELECT 1 AS n",
		Rows: []viewkeeper.RowJSON{{Name: name, Version: 42, Definition: def}, {Name: gone, Version: 42, Dropped: true}},
	}
	d.Normalize()
	ids := []ID{{ID: "3f0c", Text: HashText(viewkeeper.Submission{SQL: d.SQL}), Version: 42}}
	return map[string]Record{
		"row.json":  Row{row},
		"drop.json": Row{drop},
		"commit.json": &Commit{Version: 42, Epoch: 9, Owner: "node-1", At: at, Engine: "model 1", BaseDigest: "b0",
			DefinitionsTopic: "AAAAAAAAAAAAAAAAAAAAAQ", VersionBase: 1, EpochBase: 2,
			Decisions: []viewkeeper.Decision{d}, Rows: []viewkeeper.Row{row, drop}, IDs: ids, Format: Format1},
		"fence.json":     &Fence{Nonce: "00ff", EpochBase: 2, Owner: "node-1", At: at, Format: Format1},
		"heartbeat.json": &Heartbeat{Version: 42, Epoch: 9, Owner: "node-1", At: at, Engine: "model 1", BaseDigest: "b0", Reasons: map[string]string{"STATEMENTS_LOST": "2 statements"}, Format: Format1},
		"ids.json":       &IDs{Slot: 0, Version: 42, Epoch: 9, IDs: ids, Format: Format1},
	}
}

// The files of format 1 are written once. A change that makes this test fail is a
// change of the format.
func TestFormat1IsReadAndWrittenBack(t *testing.T) {
	for file, want := range samples() {
		path := filepath.Join("testdata", "format1", file)
		if *rewrite {
			_, value := EncodeRecord(want)
			if err := os.WriteFile(path, append(value, '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		value, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		value = value[:len(value)-1]
		got := DecodeRecord(want.Key(), value)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", file, got, want)
		}
		if key, again := EncodeRecord(got); key != want.Key() || string(again) != string(value) {
			t.Errorf("%s is written back as %s %s", file, key, again)
		}
	}
}
