package codec

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
)

// general writes a slot's row with encoding/json.
func general(r *IDs) []byte {
	return marshal(wireIDs{head(r.Format, typeIDs), r.Version, r.Epoch, list(r.IDs)}, withIDs(r.Extra, r.IDs))
}

// The two ways to write a slot's row give the same bytes, and the two ways to read one
// the same row.
func TestSlotsWithoutEncodingJSON(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "a", "3f0c-11ee", "with space", `quo"te`, `back\slash`, "<&>", "é", "\x01", "\x7f", "tab\t", "\xff", " "}
	plainOnes := 0
	for range 2000 {
		r := &IDs{Slot: rng.IntN(Slots), Version: viewkeeper.Version(rng.Uint64() >> rng.IntN(64)), Epoch: viewkeeper.Epoch(rng.Uint64() >> rng.IntN(64)), Format: rng.IntN(3)}
		few := texts[:3+rng.IntN(len(texts)-2)] // often only plain ones
		for range rng.IntN(5) {
			id := ID{ID: few[rng.IntN(len(few))], Text: TextHash(few[rng.IntN(len(few))]), Version: viewkeeper.Version(rng.Uint64() >> rng.IntN(64))}
			if rng.IntN(20) == 0 {
				id.Extra = `{"seen":1}`
			}
			r.IDs = append(r.IDs, id)
		}
		if rng.IntN(20) == 0 {
			r.Extra = map[string]json.RawMessage{"more": json.RawMessage("1")}
		}
		_, value := EncodeRecord(r)
		if want := general(r); string(value) != string(want) {
			t.Fatalf("written\n%s, want\n%s", value, want)
		}
		want, err := decodeAnyIDs(r.Slot, value)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := readSlot(r.Slot, value); ok {
			plainOnes++
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s\nread %+v, want %+v", value, got, want)
			}
		}
		if got := DecodeRecord(r.Key(), value); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\ndecoded %+v, want %+v", value, got, want)
		}
	}
	if plainOnes < 200 {
		t.Errorf("only %d of the rows were plain", plainOnes)
	}
}

// What is not quite the plain form goes the general way, whatever that says to it.
func TestSlotsInOtherForms(t *testing.T) {
	const whole = `{"format":1,"type":"ids","version":9,"epoch":2,"ids":[{"id":"a","text":"00","version":8},{"id":"b","text":"01","version":9}]}`
	if _, ok := readSlot(0, []byte(whole)); !ok {
		t.Fatal("the plain form is not read")
	}
	for i := range whole {
		for _, other := range []string{whole[:i], whole[:i] + whole[i+1:], whole[:i] + " " + whole[i:], whole[:i] + "0" + whole[i:], whole[:i] + `"` + whole[i:],
			whole[:i] + `\` + whole[i:], whole[:i] + "," + whole[i:], whole[:i] + "\n" + whole[i:], whole[:i] + "}" + whole[i:]} {
			got, ok := readSlot(0, []byte(other))
			if !ok {
				continue
			}
			want, err := decodeAnyIDs(0, []byte(other))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s\nis read as %+v; in general it is %+v, %v", other, got, want, err)
			}
		}
	}
	for _, other := range []string{
		strings.Replace(whole, `"version":9,`, `"version":-9,`, 1), strings.Replace(whole, `"version":9,`, `"version":1e3,`, 1),
		strings.Replace(whole, `"version":9,`, `"version":99999999999999999999,`, 1), strings.Replace(whole, `"format":1`, `"format":2`, 1),
		strings.Replace(whole, `"a"`, `"\u0061"`, 1), strings.Replace(whole, `"a"`, `"é"`, 1),
	} {
		if r, ok := readSlot(0, []byte(other)); ok {
			t.Errorf("%s is read as %+v", other, r)
		}
	}
}

// A slot's row takes few allocations, however many ids it has.
func TestASlotIsReadAtOnce(t *testing.T) {
	r := &IDs{Slot: 1, Version: 511, Epoch: 3}
	for i := range SlotSpan {
		r.IDs = append(r.IDs, ID{ID: fmt.Sprintf("statement-%d", i), Text: HashText(viewkeeper.Submission{SQL: fmt.Sprint(i)}), Version: viewkeeper.Version(SlotSpan + i)})
	}
	key, value := EncodeRecord(r)
	if n := testing.AllocsPerRun(10, func() { DecodeRecord(key, value) }); n > 10 {
		t.Errorf("reading %d ids takes %v allocations", SlotSpan, n)
	}
	if n := testing.AllocsPerRun(10, func() { EncodeRecord(r) }); n > 5 {
		t.Errorf("writing %d ids takes %v allocations", SlotSpan, n)
	}
}

// commitInGeneral writes a commit row with encoding/json alone.
func commitInGeneral(c *Commit) []byte {
	w := struct {
		wireCommitBefore
		Decisions []json.RawMessage `json:"decisions"`
		Rows      []json.RawMessage `json:"rows"`
		wireCommitAfter
	}{wireCommitBefore{head(c.Format, typeCommit), c.Version, c.Epoch, c.Owner, jsonTime(c.At), c.Engine, c.BaseDigest,
		c.DefinitionsTopic, c.VersionBase, c.EpochBase, c.PurgedThrough}, []json.RawMessage{}, []json.RawMessage{}, wireCommitAfter{list(c.IDs), c.Live}}
	for _, d := range c.Decisions {
		w.Decisions = append(w.Decisions, marshal(presentable(d), d.Extra))
	}
	for _, r := range c.Rows {
		r.Epoch = c.Epoch
		w.Rows = append(w.Rows, encodeRow(r))
	}
	return marshal(w, withIDs(c.Extra, c.IDs))
}

// A commit row is written as encoding/json would write it, and read as by the way that
// keeps what is not known here.
func TestCommitsWithoutSecondLook(t *testing.T) {
	full := *samples()["commit.json"].(*Commit)
	odd := full
	odd.Live = &LiveSum{Version: 42, Sum: "00"}
	odd.Owner = `qu"ote < & > ` + "\u2028"
	odd.Extra = map[string]json.RawMessage{"later": json.RawMessage(`{"a": [1, 2]}`)}
	spaced := sampleDecision()
	spaced.Extra = map[string]json.RawMessage{"more": json.RawMessage(`[1,  {"b" : "\u2029"}]`)}
	odd.Decisions = append([]viewkeeper.Decision{spaced}, full.Decisions...)
	newer := full
	newer.Format = 3
	for i, c := range []*Commit{{}, {Version: 1}, &full, &odd, &newer, full.WithEpoch(77)} {
		_, value := EncodeRecord(c)
		if want := commitInGeneral(c); string(value) != string(want) {
			t.Errorf("%d: written\n%s, want\n%s", i, value, want)
		}
		got, err := decodeCommit(value)
		want, anyErr := decodeAnyCommit(value)
		if err != nil || anyErr != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%d: read %+v %v, want %+v %v", i, got, err, want, anyErr)
		}
	}
	for _, value := range []string{
		`{"format":1,"type":"commit","decisions":[null],"rows":null}`, `{"format":1,"type":"commit","rows":[null]}`, `{"format":1,"type":"row"}`,
		`{"format":1,"type":"commit","rows":[{"format":1,"type":"row","name":"main.a"}]}`, `{"format":1,"type":"commit","decisions":[{"statement_id":7}]}`,
		`{"format":2,"type":"commit","decisions":[{"statement_id":"x","changed":[{"name":"main.a"}]}],"ids":[]} `, `{"format":1,"type":"commit"}{}`,
	} {
		got, err := decodeCommit([]byte(value))
		want, anyErr := decodeAnyCommit([]byte(value))
		if (err == nil) != (anyErr == nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: read %+v %v, want %+v %v", value, got, err, want, anyErr)
		}
	}
}
