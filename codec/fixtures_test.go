package codec

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

var rewrite = flag.Bool("rewrite", false, "write the fixtures of the current format that are missing, and the list of all fixtures' hashes")

// samples has one of each record, with every field set.
func samples() map[string]Record {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	name := viewkeeper.MakeName("ops", "daily")
	gone := viewkeeper.MakeName("", "old")
	comment := "per day <&>"
	def := &viewkeeper.Definition{Name: name, Kind: viewkeeper.KindView, SQL: "CREATE VIEW ops.daily AS SELECT 1 AS n", Comment: &comment, ID: 7}
	row := viewkeeper.Row{Name: name, Version: 42, Epoch: 9, Definition: def, Format: Format1}
	drop := viewkeeper.Row{Name: gone, Version: 41, Epoch: 9, Format: Format1}
	d := sampleDecision()
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

func sampleDecision() viewkeeper.Decision {
	name, gone := viewkeeper.MakeName("ops", "daily"), viewkeeper.MakeName("", "old")
	comment := "per day <&>"
	def := &viewkeeper.Definition{Name: name, Kind: viewkeeper.KindView, SQL: "CREATE VIEW ops.daily AS SELECT 1 AS n", Comment: &comment, ID: 7}
	d := viewkeeper.Decision{
		StatementID: "3f0c", Version: 42, Offset: 41, Verdict: viewkeeper.Accepted, Message: "replaced ops.daily",
		Changed: []viewkeeper.Change{{Name: name, Action: viewkeeper.ActionReplaced,
			ColumnsBefore: []viewkeeper.Column{{Name: "n", Type: "BIGINT"}}, ColumnsAfter: []viewkeeper.Column{{Name: "n", Type: "INTEGER"}}}},
		Author: "jane@example.org", Reason: "narrower", At: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC),
		Owner: "node-1", Epoch: 9, Engine: "model 1", BaseDigest: "b0",
		SQL:  "CREATE OR REPLACE VIEW ops.daily AS SELECT 1 AS n",
		Rows: []viewkeeper.RowJSON{{Name: name, Version: 42, Definition: def}, {Name: gone, Version: 42, Dropped: true}},
	}
	d.Normalize()
	return d
}

// fixture reads a file of testdata, without its last newline.
func fixture(t *testing.T, dir, file string) []byte {
	t.Helper()
	value, err := os.ReadFile(filepath.Join("testdata", dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.TrimSuffix(string(value), "\n"))
}

// missing writes a fixture that is not there, where -rewrite says so. One that is
// there is never written again.
func missing(t *testing.T, dir, file string, value []byte) {
	t.Helper()
	path := filepath.Join("testdata", dir, file)
	if _, err := os.Stat(path); err == nil || !*rewrite {
		return
	}
	if err := os.WriteFile(path, append(value, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The files of format 1 are written once. A change that makes this test fail is a
// change of the format.
func TestFormat1IsReadAndWrittenBack(t *testing.T) {
	for file, want := range samples() {
		_, value := EncodeRecord(want)
		missing(t, "format1", file, value)
		value = fixture(t, "format1", file)
		got := DecodeRecord(want.Key(), value)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n got %+v\nwant %+v", file, got, want)
		}
		if key, again := EncodeRecord(got); key != want.Key() || string(again) != string(value) {
			t.Errorf("%s is written back as %s %s", file, key, again)
		}
	}
	summed := *samples()["commit.json"].(*Commit)
	summed.Live = &LiveSum{Version: 42, Sum: "0123456789abcdef"}
	_, value := EncodeRecord(&summed)
	missing(t, "format1", "commit_live.json", value)
	value = fixture(t, "format1", "commit_live.json")
	if got := DecodeRecord(KeyCommit, value); !reflect.DeepEqual(got, &summed) || encoded(got) != string(value) {
		t.Errorf("commit_live.json:\n got %+v\nwant %+v", got, &summed)
	}
	if h := HashRow(summed.Rows[0]); fmt.Sprintf("%016x", h) != "e0b9659bdbf37e65" {
		t.Errorf("the hash of a row is %016x", h)
	}

	want := sampleDecision()
	missing(t, "format1", "decision.json", EncodeDecision(want).Value)
	value = fixture(t, "format1", "decision.json")
	got, err := DecodeDecision(value)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the decision: %v\n got %+v\nwant %+v", err, got, want)
	}
	if again := EncodeDecision(got).Value; string(again) != string(value) {
		t.Errorf("the decision is written back as %s", again)
	}
}

// testdata/newer is what a program of the next format may write: every record with a
// higher number and with fields, at every depth, that this program does not know.
// They are read as far as they are known, and come out with nothing lost.
func TestANewerFormatIsReadAndWrittenBack(t *testing.T) {
	for file, like := range samples() {
		value := fixture(t, "newer", file)
		got := DecodeRecord(like.Key(), value)
		if u, ok := got.(Unknown); ok {
			t.Errorf("%s is unknown: %s", file, u.Reason)
			continue
		}
		if n := FormatOf(got); n != 2 {
			t.Errorf("%s has format %d", file, n)
		}
		key, again := EncodeRecord(got)
		if key != like.Key() {
			t.Errorf("%s is written back under %s", file, key)
		}
		for _, lost := range append(notIn(t, value, again), notIn(t, again, value)...) {
			t.Errorf("%s: %s is not the same in\n%s", file, lost, again)
		}
	}
	value := fixture(t, "newer", "decision.json")
	d, err := DecodeDecision(value)
	if err != nil || d.Format != 2 {
		t.Fatalf("%v, format %d", err, d.Format)
	}
	again := EncodeDecision(d).Value
	for _, lost := range append(notIn(t, value, again), notIn(t, again, value)...) {
		t.Errorf("the decision: %s is not the same in\n%s", lost, again)
	}

	// What is taken out of a record takes along what belongs to it: the decisions,
	// ids and rows of a commit row, which its owner's successor writes on their own;
	// the rows of a decision.
	c := DecodeRecord(KeyCommit, fixture(t, "newer", "commit.json")).(*Commit)
	for what, out := range map[string]string{
		`"cost_ms":1.25`:             string(EncodeDecision(c.WithEpoch(10).Decisions[0]).Value),
		`"lineage":{"n":[]}`:         string(EncodeDecision(c.Decisions[0]).Value),
		`"tags":["a","b"]`:           encoded(Row{c.WithEpoch(10).Rows[0]}),
		`"producer":"kcat"`:          encoded(&IDs{Slot: 0, IDs: c.IDs}),
		`"owner_team":"ops"`:         encoded(Row{RowsOf(d)[0]}),
		`"dropped_because":{"state`:  encoded(Row{RowsOf(d)[1]}),
		`"regions":["eu",{"name":"u`: encoded(c.WithEpoch(10)),
	} {
		if !strings.Contains(out, what) {
			t.Errorf("%s is not in\n%s", what, out)
		}
		if !strings.Contains(out, `"format":2`) && what != `"producer":"kcat"` {
			t.Errorf("not of format 2: %s", out)
		}
	}
}

func encoded(r Record) string {
	_, value := EncodeRecord(r)
	return string(value)
}

// sums is the list of all fixtures with their hashes.
const sums = "testdata/SHA256SUMS"

// A released fixture is never edited, since the records that it stands for lie in
// somebody's topic: what it says can only be added to, in a new file.
func TestFixturesAreNotEdited(t *testing.T) {
	var now []string
	err := filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".json") {
			return err
		}
		value, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(value)
		now = append(now, hex.EncodeToString(sum[:])+"  "+filepath.ToSlash(strings.TrimPrefix(path, "testdata"+string(filepath.Separator))))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	text, err := os.ReadFile(sums)
	if err != nil && !*rewrite {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		known[strings.TrimSuffix(line, "\n")] = true
	}
	for line := range known {
		found := false
		for _, is := range now {
			found = found || is == line
		}
		if !found {
			t.Errorf("a fixture was edited or removed; put it back: %s", line)
		}
	}
	for _, line := range now {
		if !known[line] && !*rewrite {
			t.Errorf("not in %s; a new fixture is entered with -rewrite: %s", sums, line)
		}
	}
	if *rewrite && !t.Failed() {
		if err := os.WriteFile(sums, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Every field that lies in Kafka is in FORMAT.md.
func TestFormatPageHasEveryField(t *testing.T) {
	text, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	section := func(head string) string {
		_, rest, found := strings.Cut(page, "\n"+head+"\n")
		if !found {
			t.Errorf("FORMAT.md has no section %q", head)
		}
		if end := strings.Index(rest, "\n`"); end >= 0 && strings.HasPrefix(head, "`") {
			rest = rest[:end]
		}
		if end := strings.Index(rest, "\n## "); end >= 0 {
			rest = rest[:end]
		}
		return rest
	}
	for head, of := range map[string]any{
		"`row`": wireRow{}, "`commit`": wireCommit{}, "`fence`": wireFence{}, "`heartbeat`": wireHeartbeat{}, "`ids`": wireIDs{},
		"## Decisions, `viewkeeper.<catalog>-decisions`": wireDecision{},
	} {
		in := section(head)
		for _, field := range fields(reflect.TypeOf(of)) {
			if !strings.Contains(in, "`"+field+"`") {
				t.Errorf("FORMAT.md, %s: the field %s is missing", head, field)
			}
		}
	}
}

func fields(of reflect.Type) (names []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case f.Anonymous:
			names = append(names, fields(f.Type)...)
		case name != "":
			names = append(names, name)
		}
	}
	return names
}
