package codec

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/viewkeeper/viewkeeper"
)

func TestSubmissionRoundTrip(t *testing.T) {
	v := viewkeeper.Version(7)
	want := viewkeeper.Submission{
		Key: "main.a", SQL: "CREATE VIEW a AS SELECT 1", ID: "id-1", Author: "jane", Reason: "why", ExpectVersion: &v,
		Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Offset: 12, At: time.Unix(5, 0).UTC(),
	}
	m := EncodeSubmission(want)
	m.Offset, m.Time = 12, time.Unix(5, 0)
	if got := DecodeSubmission("topic", m); !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	drop := viewkeeper.Submission{Key: "main.a", Tombstone: true}
	if m := EncodeSubmission(drop); m.Value != nil || len(m.Headers) != 0 {
		t.Errorf("a tombstone is %+v", m)
	}
	if got := DecodeSubmission("topic", Message{Key: []byte("k"), Value: []byte{}, Offset: 3}); !got.Tombstone || got.ID != "topic:3" {
		t.Errorf("an empty value is %+v", got)
	}
}

func TestMalformedHeaders(t *testing.T) {
	cases := []struct {
		name    string
		headers []Header
		want    string // in HeaderError
	}{
		{"id with a colon", []Header{{"id", []byte("a:b")}}, "':'"},
		{"empty id", []Header{{"id", nil}}, "must not be empty"},
		{"long id", []Header{{"id", []byte(strings.Repeat("x", 129))}}, "at most 128"},
		{"id not text", []Header{{"id", []byte("\xff")}}, "UTF-8"},
		{"id twice", []Header{{"id", []byte("a")}, {"id", []byte("a")}}, "twice"},
		{"negative version", []Header{{"expect-version", []byte("-1")}}, "expect-version"},
		{"empty version", []Header{{"expect-version", nil}}, "expect-version"},
		{"author not text", []Header{{"author", []byte("\xff")}}, "author"},
		{"long author", []Header{{"author", bytes.Repeat([]byte("é"), 2<<20)}}, "author has 4194304 bytes, the limit is 1024"},
		{"long reason", []Header{{"reason", bytes.Repeat([]byte("x"), 20<<10)}}, "reason has"},
		{"traceparent is ignored", []Header{{"traceparent", []byte("zz")}}, ""},
		{"others are ignored", []Header{{"x", []byte("\xff")}, {"x", nil}}, ""},
	}
	for _, c := range cases {
		s := DecodeSubmission("t", Message{Key: []byte("k"), Value: []byte("x"), Headers: c.headers, Offset: 4})
		if c.want == "" && s.HeaderError != "" || !strings.Contains(s.HeaderError, c.want) {
			t.Errorf("%s: %q", c.name, s.HeaderError)
		}
		if len(s.Author)+len(s.Reason) > 100 {
			t.Errorf("%s: all of it is kept", c.name)
		}
		if c.name != "id twice" && s.ID != "t:4" {
			t.Errorf("%s: the id is %q", c.name, s.ID)
		}
	}
}

func TestDecisionRoundTrip(t *testing.T) {
	d := samples()["commit.json"].(*Commit).Decisions[0]
	m := EncodeDecision(d)
	if string(m.Key) != d.StatementID || string(m.Headers[0].Value) != "41" || string(m.Headers[1].Value) != "9" {
		t.Errorf("%+v", m)
	}
	got, err := DecodeDecision(m.Value)
	if err != nil || !reflect.DeepEqual(got, d) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, d)
	}
	for _, bad := range []string{"", "x", "{}", `{"format":1}`, `{"statement_id":"a","version":1}`} {
		if _, err := DecodeDecision([]byte(bad)); err == nil {
			t.Errorf("%q is a decision", bad)
		}
	}
}

func FuzzDecodeSubmission(f *testing.F) {
	f.Add([]byte("k"), []byte("v"), "id", []byte("a:b"), "expect-version", []byte("1"), int64(0))
	f.Add([]byte(nil), []byte(nil), "author", []byte("\xff"), "traceparent", []byte("00-"), int64(1<<62))
	f.Fuzz(func(t *testing.T, key, value []byte, h1 string, v1 []byte, h2 string, v2 []byte, ms int64) {
		s := DecodeSubmission("t", Message{key, value, []Header{{h1, v1}, {h2, v2}}, 5, time.UnixMilli(ms)})
		if s.ID == "" || len(s.ID) > 300 || len(s.Author) > MaxAuthor || len(s.Reason) > MaxReason || !utf8.ValidString(s.ID+s.Author+s.Reason+s.HeaderError) {
			t.Fatalf("%+v", s)
		}
		m := EncodeSubmission(s)
		m.Offset, m.Time = 5, s.At
		again := DecodeSubmission("t", m)
		again.HeaderError, s.HeaderError = "", ""
		if !reflect.DeepEqual(again, s) {
			t.Fatalf("\n got %+v\nwant %+v", again, s)
		}
	})
}

func FuzzDecodeDecision(f *testing.F) {
	f.Add(EncodeDecision(samples()["commit.json"].(*Commit).Decisions[0]).Value)
	f.Add([]byte(`{"format":1,"statement_id":"a","version":1,"changed":null}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		d, err := DecodeDecision(value)
		if err != nil {
			return
		}
		value = EncodeDecision(d).Value
		again, err := DecodeDecision(value)
		if second := EncodeDecision(again).Value; err != nil || string(second) != string(value) {
			t.Fatalf("%v\n got %s\nwant %s", err, second, value)
		}
	})
}
