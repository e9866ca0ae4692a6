package codec

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

func TestUnknownFieldsAndNewerFormatsSurvive(t *testing.T) {
	cases := []struct{ key, value string }{
		{"main.a", `{"format":2,"type":"row","name":"main.a","version":3,"epoch":2,"dropped":false,"definition":{"name":"main.a","kind":"view","sql":"x","id":1,"tags":["a"]},"owner":"bob"}`},
		{"main.a", `{"format":1,"type":"row","name":"main.a","version":3,"epoch":2,"dropped":true,"why":{"x":1}}`},
		{KeyCommit, `{"format":3,"type":"commit","version":3,"epoch":2,"rows":[{"format":2,"type":"row","name":"main.a","version":3,"dropped":true,"epoch":2,"new":1}],"decisions":[{"statement_id":"s","version":3,"message":"","more":[1,2],"changed":[{"name":"main.a","action":"created","cost":5}]}],"later":true}`},
		{KeyHeartbeat, `{"format":1,"type":"heartbeat","epoch":4,"load":0.5}`},
		{"#fence/aa", `{"format":9,"type":"fence","epoch_base":4,"region":"x"}`},
		{"#ids/0003", `{"format":1,"type":"ids","ids":[{"id":"a","text":"00","version":9,"seen":"2026"}],"z":null}`},
	}
	for _, c := range cases {
		r := DecodeRecord(c.key, []byte(c.value))
		if u, ok := r.(Unknown); ok {
			t.Errorf("%s: unknown: %s", c.value, u.Reason)
			continue
		}
		key, value := EncodeRecord(r)
		if key != c.key {
			t.Errorf("key %s became %s", c.key, key)
		}
		for _, missing := range notIn(t, []byte(c.value), value) {
			t.Errorf("%s\nlost %s in\n%s", c.value, missing, value)
		}
		if _, again := EncodeRecord(DecodeRecord(key, value)); string(again) != string(value) {
			t.Errorf("the second time:\n got %s\nwant %s", again, value)
		}
	}
}

// notIn lists what is in a and not in b, both JSON objects.
func notIn(t *testing.T, a, b []byte) (missing []string) {
	t.Helper()
	var walk func(path string, a, b any)
	walk = func(path string, a, b any) {
		switch a := a.(type) {
		case map[string]any:
			b, _ := b.(map[string]any)
			for k, v := range a {
				if _, ok := b[k]; !ok {
					missing = append(missing, path+"."+k)
					continue
				}
				walk(path+"."+k, v, b[k])
			}
		case []any:
			b, _ := b.([]any)
			if len(a) != len(b) {
				missing = append(missing, path)
				return
			}
			for i := range a {
				walk(path, a[i], b[i])
			}
		default:
			if !reflect.DeepEqual(a, b) {
				missing = append(missing, path)
			}
		}
	}
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	walk("", x, y)
	return missing
}

func TestUnknownRecords(t *testing.T) {
	cases := []struct {
		key, value string
		newer      bool
	}{
		{"main.a", "", false},
		{"main.a", "SELECT 1", false},
		{"main.a", "null", false},
		{"main.a", `{"format":1,"type":"row","name":"main.b","version":3,"dropped":true}`, false},
		{"main.a", `{"format":1,"type":"row","name":"main.a","version":3}`, false},
		{"main.a", `{"format":1,"type":"row","name":"main.a","version":-3,"dropped":true}`, false},
		{"main.a", `{"format":1,"type":"row","name":"main.a","version":3,"dropped":true} {}`, false},
		{"main.a", `{"format":1,"type":"fence","epoch_base":3}`, false},
		{"main.a", `{"type":"row","name":"main.a","version":3,"dropped":true}`, false},
		{"main.a", `{"format":2,"type":"tablet"}`, true},
		{"a", `{"format":1,"type":"row","name":"main.a","version":3,"dropped":true}`, false},
		{"Main.a", `{"format":1,"type":"row","name":"main.a","version":3,"dropped":true}`, false},
		{"#ids/3", `{"format":1,"type":"ids"}`, false},
		{"#ids/1024", `{"format":1,"type":"ids"}`, false},
		{"#fence/", `{"format":1,"type":"fence"}`, false},
		{"#lease", `{"format":2,"type":"lease"}`, true},
		{"\xff.\xfe", "\xff", false},
	}
	for _, c := range cases {
		r := DecodeRecord(c.key, []byte(c.value))
		u, ok := r.(Unknown)
		if !ok {
			t.Errorf("%q %q is %+v, want unknown", c.key, c.value, r)
			continue
		}
		if u.Newer != c.newer || u.Reason == "" {
			t.Errorf("%q %q: newer %v, reason %q", c.key, c.value, u.Newer, u.Reason)
		}
		if key, value := EncodeRecord(r); key != c.key || string(value) != c.value {
			t.Errorf("%q %q is written back as %q %q", c.key, c.value, key, value)
		}
	}
	if r := DecodeRecord("main.a", nil); r != (Tombstone{"main.a"}) {
		t.Errorf("a nil value is %+v", r)
	}
}

// A field in another spelling must not come back beside the real one and shadow
// what is set there later.
func TestOtherSpellingDoesNotShadow(t *testing.T) {
	r := DecodeRecord("main.a", []byte(`{"format":1,"type":"row","name":"main.a","Version":3,"dropped":true,"new":1}`)).(Row)
	r.Version = 8
	_, value := EncodeRecord(r)
	if again := DecodeRecord("main.a", value).(Row); again.Version != 8 || again.Extra["new"] == nil {
		t.Errorf("%s", value)
	}
}

func TestDropLosesWhatBelongsToTheDefinition(t *testing.T) {
	r := DecodeRecord("main.a", []byte(`{"format":2,"type":"row","name":"main.a","version":3,"definition":{"name":"main.a","kind":"view","sql":"x","id":1,"tags":["a"]}}`)).(Row)
	r.Definition = nil
	key, value := EncodeRecord(r)
	if again, ok := DecodeRecord(key, value).(Row); !ok || again.Live() || strings.Contains(string(value), "tags") {
		t.Errorf("%s", value)
	}
}

func TestAnyTimeCanBeWritten(t *testing.T) {
	far := time.Unix(1<<60, 0)
	_, value := EncodeRecord(&Commit{At: far, Decisions: []viewkeeper.Decision{{At: far}}})
	if _, ok := DecodeRecord(KeyCommit, value).(*Commit); !ok {
		t.Errorf("%s", value)
	}
	if s := DecodeSubmission("t", Message{Time: far}); !s.At.IsZero() {
		t.Errorf("At is %v", s.At)
	}
}

func TestSlots(t *testing.T) {
	for v, want := range map[viewkeeper.Version]int{0: 0, 255: 0, 256: 1, Slots*SlotSpan - 1: Slots - 1, Slots * SlotSpan: 0} {
		if got := Slot(v); got != want {
			t.Errorf("the slot of %d is %d, want %d", v, got, want)
		}
	}
	if SlotStart(257) != 256 || SlotStart(255) != 0 {
		t.Error("SlotStart")
	}
	if (Slots-1)*SlotSpan < 2*100_000 {
		t.Error("the ring is too small")
	}
}

func FuzzDecodeRecord(f *testing.F) {
	for _, r := range samples() {
		key, value := EncodeRecord(r)
		f.Add(key, value)
	}
	f.Add("main.a", []byte(`{"format":2,"type":"row","name":"main.a","dropped":true,"x":{"y":[1,{"z":null}]},"X":1}`))
	f.Add("#lease", []byte(`{"format":2}`))
	f.Add(`"A b"."c"`, []byte("\x00"))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		first := DecodeRecord(key, value)
		k, v := EncodeRecord(first)
		if k != key {
			t.Fatalf("key %q became %q", key, k)
		}
		second := DecodeRecord(k, v)
		k2, v2 := EncodeRecord(second)
		if k2 != k || string(v2) != string(v) {
			t.Fatalf("not stable: %q then %q", v, v2)
		}
		if n, slot := SlotKey(key); slot {
			if r, ok := readSlot(n, value); ok {
				if want, err := decodeAnyIDs(n, value); err != nil || !reflect.DeepEqual(r, want) {
					t.Fatalf("%q is read as %+v, and in general as %+v, %v", value, r, want, err)
				}
			}
		}
		if _, ok := first.(Unknown); ok && string(v) != string(value) {
			t.Fatalf("an unknown value changed: %q to %q", value, v)
		}
	})
}
