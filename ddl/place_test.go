package ddl_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

// quoteRandomly writes s as a string literal in one of its forms.
func quoteRandomly(r *rand.Rand, s string) string {
	switch r.Intn(4) {
	case 0:
		if !strings.Contains(s, "$$") && !strings.HasSuffix(s, "$") {
			return "$$" + s + "$$"
		}
	case 1:
		if !strings.Contains(s, "$tag$") {
			return "$tag$" + s + "$tag$"
		}
	case 2:
		var b strings.Builder
		b.WriteString("E'")
		for _, c := range s {
			switch {
			case c == '\'' && r.Intn(2) == 0:
				b.WriteString("''")
			case c == '\'' || c == '\\':
				b.WriteString(`\` + string(c))
			case r.Intn(8) == 0:
				fmt.Fprintf(&b, `\U%08x`, c)
			case c < 0x80 && r.Intn(8) == 0:
				fmt.Fprintf(&b, `\x%02x`, c)
			case c < 0x80 && r.Intn(8) == 0:
				fmt.Fprintf(&b, `\%03o`, c)
			default:
				b.WriteRune(c)
			}
		}
		return b.String() + "'"
	}
	out := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if len(out) > 12 && r.Intn(3) == 0 && !strings.Contains(out[:7], "''") && out[6] < 0x80 && out[7] < 0x80 && out[6] != '\'' && out[7] != '\'' {
		out = out[:7] + "' -- goes on\n'" + out[7:]
	}
	return out
}

// Every byte of what the engine gets for an option leads back to the same byte of
// the submitted text, or to the escape that stands for it.
func TestFragmentPlaces(t *testing.T) {
	pieces := []string{"SELECT", " a", " 'it''s'", " \"q\"", "\n", " é", " 中文", " + 1", " '\\'", " {begin}", " '{end}'", " FROM t", " $x$ $x$", " ,"}
	const seed = 1
	r := rand.New(rand.NewSource(seed))
	for i := range 3000 {
		var q strings.Builder
		q.WriteString("SELECT ")
		for range r.Intn(12) {
			q.WriteString(pieces[r.Intn(len(pieces))])
		}
		want := strings.TrimSpace(q.String())
		text := "/* é */ CREATE MATERIALIZED VIEW m WITH (count_src_query = 'b', extract_query = " + quoteRandomly(r, q.String()) +
			", merge_partitions_query = 'c', time_column = 't')"
		st, err := ddl.Parse(text)
		if err != nil {
			t.Fatalf("seed %d, text %d: %v\n%s", seed, i, err, text)
		}
		f := st.(*viewkeeper.Create).Materialized.Extract
		if f.Text != want {
			t.Fatalf("seed %d, text %d\n%s\ngives %q\nwant  %q", seed, i, text, f.Text, want)
		}
		last := -1
		for at := range len(f.Text) {
			src := f.Source(at)
			if src <= last && f.Text[at] < 0x80 {
				t.Fatalf("seed %d, text %d: places do not rise at byte %d\n%s", seed, i, at, text)
			}
			last = src
			if text[src] == f.Text[at] {
				continue
			}
			// Within an escape: it begins at most nine bytes before.
			if !strings.Contains(text[max(0, src-3):src+1], `\`) {
				t.Fatalf("seed %d, text %d: byte %d %q leads to %d %q\n%s", seed, i, at, f.Text[at], src, text[src], text)
			}
		}
	}
}

// A plain body has the length of what was submitted, and differs from it in white
// space and comments only.
func TestBodyKeepsPlaces(t *testing.T) {
	text := "\ufeffCREATE VIEW v AS\r\nSELECT\u00a0'a\u00a0b',\u200b-- don\u2019t\n E'\\'' /* it's */ x\u3000FROM t -- end\n;"
	st, err := ddl.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	f := st.(*viewkeeper.Create).Body
	toks, err := ddl.Tokens(f.Text)
	if err != nil {
		t.Fatal(err)
	}
	for _, tok := range toks {
		src := f.Source(tok.At)
		if got := text[src : src+len(tok.Text)]; got != tok.Text && got != `E'\''` {
			t.Errorf("token %q leads to %q", tok.Text, got)
		}
	}
	if want := strings.Index(text, " -- end"); f.Source(len(f.Text)) != want {
		t.Errorf("the body ends at %d, want %d", f.Source(len(f.Text)), want)
	}
}

func TestSpan(t *testing.T) {
	text := `CREATE MATERIALIZED VIEW m WITH (count_src_query = 'b', merge_partitions_query = 'c', time_column = 't',
		extract_query = E'SELECT abc, \x61bc, ''x'' FROM t')`
	st, err := ddl.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	f := st.(*viewkeeper.Create).Materialized.Extract
	for _, c := range []struct {
		part  string
		nth   int
		exact bool
	}{{"abc", 0, true}, {"abc", 1, false}, {"'x'", 0, false}, {"t", 0, true}} {
		at := -1
		for range c.nth + 1 {
			at += 1 + strings.Index(f.Text[at+1:], c.part)
		}
		from, to, exact := ddl.Span(text, f, at, at+len(c.part))
		if exact != c.exact || exact && text[from:to] != c.part {
			t.Errorf("%s (%d): [%d, %d) %q exact=%v", c.part, c.nth, from, to, text[from:to], exact)
		}
	}
}

func TestApplyEdits(t *testing.T) {
	out, m := ddl.ApplyEdits("from t, u", []ddl.Edit{{8, 9, "s.u"}, {5, 6, `"main"."t"`}, {0, 0, "("}, {9, 9, ")"}})
	if want := `(from "main"."t", s.u)`; out != want {
		t.Fatalf("%s, want %s", out, want)
	}
	for at, want := range map[int]int{-1: -1, 0: 0, 1: 0, 5: 4, 6: 5, 12: 5, 16: 6, 18: 8, 20: 8, 21: 9, len(out): 9} {
		if got := m.Source(at); got != want {
			t.Errorf("Source(%d) = %d, want %d (%q)", at, got, want, out[max(at, 0):])
		}
	}
	if same, id := ddl.ApplyEdits("x", nil); same != "x" || id.Source(1) != 1 {
		t.Error("no edit changes something")
	}
	defer func() {
		if recover() == nil {
			t.Error("overlapping edits go through")
		}
	}()
	ddl.ApplyEdits("abc", []ddl.Edit{{0, 2, ""}, {1, 3, ""}})
}

// What edits leave alone leads back to itself, whatever they are.
func TestEditsLeadBack(t *testing.T) {
	r := rand.New(rand.NewSource(2))
	for range 2000 {
		text := strings.Repeat("abcdefghij", 1+r.Intn(4))
		var edits []ddl.Edit
		touched := make([]bool, len(text)+1)
		for at := 0; at < len(text); {
			at += r.Intn(6)
			end := at + r.Intn(4)
			if end > len(text) {
				break
			}
			edits = append(edits, ddl.Edit{At: at, End: end, Text: strings.Repeat("X", r.Intn(4))})
			for i := at; i < end; i++ {
				touched[i] = true
			}
			at = end + 1
		}
		r.Shuffle(len(edits), func(i, j int) { edits[i], edits[j] = edits[j], edits[i] })
		out, m := ddl.ApplyEdits(text, edits)
		for i := range len(out) {
			src := m.Source(i)
			if src < 0 || src > len(text) {
				t.Fatalf("%v: byte %d of %q leads to %d", edits, i, out, src)
			}
			if out[i] != 'X' && (out[i] != text[src] || touched[src]) {
				t.Fatalf("%v: byte %d of %q leads to %d", edits, i, out, src)
			}
		}
	}
}

func TestNameAt(t *testing.T) {
	for _, c := range []struct {
		text string
		at   int
		want string
		end  int
	}{
		{"from t, u", 5, "main.t", 6},
		{`from S . "T" x`, 5, "s.t", 12},
		{"from a.b.c", 5, "", 5},
		{"from a.", 5, "", 5},
		{"from  a", 5, "", 5},
		{"from 'a'", 5, "", 5},
	} {
		name, end, ok := ddl.NameAt(c.text, c.at)
		if ok != (c.want != "") || name.String() != c.want || end != c.end {
			t.Errorf("%q at %d: %s up to %d, %v", c.text, c.at, name, end, ok)
		}
	}
}
