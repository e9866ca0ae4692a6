package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// An error is the same on both sides, as far as callers tell errors apart.
func TestErrorsCrossTheWire(t *testing.T) {
	for _, err := range []error{
		&registry.PlanError{Code: viewkeeper.CodeBind, Message: "no", At: 7},
		&registry.PlanError{Code: duckdb.CodeMemory, Message: "no", At: -1},
		&viewkeeper.Error{Code: viewkeeper.CodeNotAllowed, Message: "no", Name: viewkeeper.MakeName("s", "v"), Offset: 0},
		context.DeadlineExceeded,
		context.Canceled,
		duckdb.ErrClosed,
		&registry.LostError{Detail: "no memory"},
		&registry.ApplyError{Refused: []registry.RefusedApply{{Name: viewkeeper.MakeName("s", "v"), Reason: "no file"}, {Name: viewkeeper.MakeName("", "w"), Reason: "no"}}},
		errors.New("anything"),
	} {
		payload, fault := json.Marshal(toWire(fmt.Errorf("around it: %w", err)))
		if fault != nil {
			t.Fatal(fault)
		}
		got := readError(payload)
		if !errors.Is(got, err) && !reflect.DeepEqual(got, err) && got.Error() != "around it: "+err.Error() {
			t.Errorf("%#v became %#v", err, got)
		}
	}
	if readError([]byte("{")) == nil {
		t.Error("a broken error is no error")
	}
}

func TestFrames(t *testing.T) {
	var wire bytes.Buffer
	long := bytes.Repeat([]byte("x"), 2*maxData+1)
	if err := writeFrame(&wire, frameCall, []byte("call")); err != nil {
		t.Fatal(err)
	}
	out := &frameWriter{w: &wire}
	if n, err := out.Write(long); n != len(long) || err != nil {
		t.Fatal(n, err)
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		kind frameKind
		n    int
	}{{frameCall, 4}, {frameData, maxData}, {frameData, maxData}, {frameData, 1}} {
		kind, n, err := readHeader(&wire)
		if err != nil || kind != want.kind || n != want.n {
			t.Fatalf("%q %d %v, want %v", kind, n, err, want)
		}
		if _, err := readPayload(&wire, n); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := readHeader(&wire); err != io.EOF {
		t.Fatal(err)
	}
	for _, bad := range []string{"R\x01\x00\x00\x00\x00", "R\x02\xff\xff\xff\xff", "R\x02"} {
		if _, _, err := readHeader(bytes.NewBufferString(bad)); err == nil || err == io.EOF {
			t.Errorf("%q: %v", bad, err)
		}
	}
	// A length that nothing follows takes no memory.
	if _, err := readPayload(bytes.NewReader([]byte("short")), maxMessage); err == nil {
		t.Error("a short payload was read")
	}
}
