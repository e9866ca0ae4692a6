package ddl_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

// The seeds of each target lie in testdata/fuzz. Run one with
//
//	go test ./ddl -fuzz FuzzParse -fuzztime 1m

// Tokens are in order, do not overlap, and are what stands at their places; what
// lies between them is white space and comments.
func FuzzTokens(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		toks, err := ddl.Tokens(text)
		var e *viewkeeper.Error
		if err != nil && (!errors.As(err, &e) || e.Code != viewkeeper.CodeSyntax || e.Offset < 0 || e.Offset >= len(text)) {
			t.Fatalf("error %v", err)
		}
		if err == nil && (!utf8.ValidString(text) || strings.Contains(text, "\x00")) {
			t.Fatal("a text that is none goes through")
		}
		done := 0
		for _, tok := range toks {
			if tok.At < done || tok.Text == "" || tok.End() > len(text) || text[tok.At:tok.End()] != tok.Text {
				t.Fatalf("token %+v after %d", tok, done)
			}
			done = tok.End()
		}
		if err != nil {
			return
		}
		engine := ddl.EngineText(text)
		if len(engine) != len(text) {
			t.Fatalf("the engine's text has %d bytes, not %d", len(engine), len(text))
		}
		again, err := ddl.Tokens(engine)
		if err != nil || len(again) != len(toks) {
			t.Fatalf("the engine's text %q has %d tokens, not %d: %v", engine, len(again), len(toks), err)
		}
		for i, tok := range again {
			if tok.At != toks[i].At || tok.Kind != toks[i].Kind || len(tok.Text) != len(toks[i].Text) {
				t.Fatalf("%q became %q", toks[i].Text, tok.Text)
			}
		}
		if a, b := ddl.CanonicalQuery(text), ddl.CanonicalQuery(engine); a != b {
			t.Fatalf("the engine's text is another query: %q, %q", a, b)
		}
	})
}

// A refusal has a place in the text; a statement's parts stand where it says, and
// its canonical text is a statement with that same canonical text.
func FuzzParse(f *testing.F) {
	wide := ddl.Limits{MaxBody: 1 << 30, MaxChangeSet: 1 << 30}
	f.Fuzz(func(t *testing.T, text string) {
		st, err := wide.Parse(text)
		if err != nil {
			var e *viewkeeper.Error
			if !errors.As(err, &e) || e.Code == "" || e.Message == "" || e.Offset < 0 || e.Offset > len(text) {
				t.Fatalf("refusal %#v", err)
			}
			return
		}
		created := []viewkeeper.Statement{st}
		if set, ok := st.(*viewkeeper.ChangeSet); ok {
			created = set.Statements
		}
		if len(st.Targets()) == 0 {
			t.Fatal("a statement about nothing")
		}
		for _, s := range created {
			c, ok := s.(*viewkeeper.Create)
			if !ok {
				continue
			}
			if text[c.Offset:c.Offset+len(c.SQL)] != c.SQL {
				t.Fatalf("%q does not stand at %d", c.SQL, c.Offset)
			}
			own, err := wide.Parse(c.SQL)
			if err != nil {
				t.Fatalf("the statement by itself, %q: %v", c.SQL, err)
			}
			if own.(*viewkeeper.Create).Canonical != c.Canonical {
				t.Fatalf("by itself it is %q, not %q", own.(*viewkeeper.Create).Canonical, c.Canonical)
			}
			again, err := wide.Parse(c.Canonical)
			if err != nil {
				t.Fatalf("canonical %q: %v", c.Canonical, err)
			}
			if got := again.(*viewkeeper.Create).Canonical; got != c.Canonical {
				t.Fatalf("canonical %q of canonical %q", got, c.Canonical)
			}
			for _, err := range []error{ddl.CheckBody(c), ddl.CheckPlaceholders(c)} {
				var e *viewkeeper.Error
				if err != nil && (!errors.As(err, &e) || e.Offset < 0 || e.Offset > len(text)) {
					t.Fatalf("refusal %#v", err)
				}
			}
		}
	})
}

// The pieces of a script are in order, and between them is nothing that Split sees
// a statement in. A prompt that has a whole script waits for no more.
func FuzzSplit(f *testing.F) {
	f.Fuzz(func(t *testing.T, script string) {
		done := 0
		for _, p := range ddl.Split(script) {
			if p.Offset < done || script[p.Offset:p.Offset+len(p.Text)] != p.Text {
				t.Fatalf("piece %+v after %d", p, done)
			}
			if rest := ddl.Split(script[done:p.Offset]); len(rest) > 0 {
				t.Fatalf("left out: %q", rest[0].Text)
			}
			if again := ddl.Split(p.Text); len(again) != 1 || again[0].Text != p.Text || again[0].Query != p.Query {
				t.Fatalf("piece %q splits into %+v", p.Text, again)
			}
			done = p.Offset + len(p.Text)
		}
		if rest := ddl.Split(script[done:]); len(rest) > 0 {
			t.Fatalf("left out: %q", rest[0].Text)
		}
		ddl.Incomplete(script)
	})
}

// Filling changes nothing but placeholders: all else leads back to itself, no
// token fuses with another, and a text without placeholders is left alone.
func FuzzFill(f *testing.F) {
	values := map[string]string{ddl.Begin: "2013-01-01 00:00:00+00", ddl.End: `it's \ 2`, ddl.Source: "main.parts"}
	f.Fuzz(func(t *testing.T, text string) {
		before, err := ddl.Tokens(text)
		out, m := ddl.Fill(text, values)
		if len(ddl.Placeholders(text)) == 0 && out != text {
			t.Fatalf("%q became %q", text, out)
		}
		for i := range len(out) {
			if src := m.Source(i); src < 0 || src > len(text) {
				t.Fatalf("byte %d of %q leads to %d", i, out, src)
			}
		}
		if err != nil {
			return
		}
		after, err := ddl.Tokens(out)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, out, err)
		}
		// {source} alone becomes three tokens, main.parts.
		extra := 0
		for _, p := range ddl.Placeholders(text) {
			if p.Name == ddl.Source && !p.InLiteral {
				extra += 2
			}
		}
		if len(after) != len(before)+extra {
			t.Fatalf("%q has %d tokens, filled %q %d", text, len(before), out, len(after))
		}
	})
}
