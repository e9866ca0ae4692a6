package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Whatever comes over the wire is read or refused, with no more memory than came;
// what was read is what is written.
func FuzzFrames(f *testing.F) {
	frame := func(kind frameKind, payload string) []byte {
		var b bytes.Buffer
		if err := writeFrame(&b, kind, []byte(payload)); err != nil {
			f.Fatal(err)
		}
		return b.Bytes()
	}
	f.Add(frame(frameCall, "\x05query"+`{"sql":"SELECT 1"}`))
	f.Add(append(frame(frameReply, `{"version":1,"columns":[]}`), frame(frameEnd, "")...))
	f.Add(frame(frameError, `{"kind":"plan","code":"BIND","message":"no","at":7}`))
	f.Add(frame(frameError, `{"kind":"lost","message":"gone"}`))
	f.Add([]byte{'D', wireVersion, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{'D', wireVersion + 1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, wire []byte) {
		r := bytes.NewReader(wire)
		for {
			before := r.Len()
			kind, n, err := readHeader(r)
			if err != nil {
				return
			}
			payload, err := readPayload(r, n)
			if err != nil {
				return
			}
			if len(payload) != n || before-r.Len() != headerSize+n {
				t.Fatalf("a frame of %d bytes gave %d", n, len(payload))
			}
			var again bytes.Buffer
			if err := writeFrame(&again, kind, payload); err != nil || !bytes.HasSuffix(wire[:len(wire)-r.Len()], again.Bytes()) {
				t.Fatalf("%v: %q", err, again.Bytes())
			}
			if c := decodeCall(payload); c.method != "" && !bytes.Equal(encodeCall(c.method, c.params), payload) {
				t.Fatalf("%q was read as a call of %q with %q", payload, c.method, c.params)
			}
			checkErrorFrame(t, payload)
		}
	})
}

// checkErrorFrame reads a payload as an error, which crosses the wire again as it is.
func checkErrorFrame(t *testing.T, payload []byte) {
	err := readError(payload)
	if err == nil {
		t.Fatalf("%q is no error", payload)
	}
	second, fault := json.Marshal(toWire(err))
	if fault != nil {
		t.Fatalf("%v: %v", err, fault)
	}
	again := readError(second)
	var a, b *registry.PlanError
	if errors.As(err, &a) != errors.As(again, &b) || a != nil && (a.Code != b.Code || a.At != b.At) {
		t.Fatalf("%v became %v", err, again)
	}
	var x, y *viewkeeper.Error
	if errors.As(err, &x) != errors.As(again, &y) || (registry.AsLost(err) == nil) != (registry.AsLost(again) == nil) {
		t.Fatalf("%v became %v", err, again)
	}
}
