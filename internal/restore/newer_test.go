package restore_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/restore"
)

var format = regexp.MustCompile(`"format":\d+`)

// newer makes of a record one of a later program.
func newer(value []byte) []byte { return format.ReplaceAll(value, []byte(`"format":99`)) }

// What a newer program wrote is never left out without a word: nothing is put back from
// it, and nothing over it, by a program that does not know what it means.
func TestOfANewerFormat(t *testing.T) {
	fence, fenceValue := codec.EncodeRecord(&codec.Fence{Nonce: "00", Owner: "later"})
	table := restore.NewTable()
	table.Add(0, fence, newer(fenceValue), nil)
	table.ReadTo()
	for _, kind := range []restore.Kind{restore.InTable, restore.Copy} {
		if _, err := restore.FromTable(kind, "there", table); err == nil || !strings.Contains(err.Error(), "newer format") || !strings.Contains(err.Error(), fence) {
			t.Errorf("from %v: %v", kind, err)
		}
	}
	known := &restore.Known{Catalog: "c", Table: table, Decisions: restore.NewDecisions(), Committed: -1}
	var no *restore.NewerFormatError
	if _, err := restore.Make(t.Context(), known, restore.FromDecisions("d")); !errors.As(err, &no) || !strings.Contains(no.Error(), "restore with the program that wrote it") {
		t.Errorf("over it: %v", err)
	}
	if _, err := restore.Adopt(known); !errors.As(err, &no) {
		t.Errorf("adopting it: %v", err)
	}

	decisions := restore.NewDecisions()
	for v := viewkeeper.Version(1); v < 3; v++ {
		value := codec.EncodeDecision(viewkeeper.Decision{StatementID: "s", Offset: int64(v) - 1, Version: v, Epoch: 1, Verdict: viewkeeper.Refused, Code: viewkeeper.CodeBind}).Value
		if v == 2 {
			value = newer(value)
		}
		decisions.Add(value)
	}
	known = &restore.Known{Catalog: "c", Table: restore.NewTable(), Decisions: decisions, Committed: -1}
	if _, err := restore.Make(t.Context(), known, restore.FromDecisions("d")); !errors.As(err, &no) || !strings.Contains(no.Error(), "version 2") {
		t.Errorf("from decisions: %v", err)
	}
}
