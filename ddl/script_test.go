package ddl_test

import (
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

// TestScripts runs testdata/scripts. Rewrite what is expected with
//
//	go test ./ddl -run TestScripts -rewrite
//
// An input with the argument "escaped" is read as the inside of a Go string, to
// show bytes that an editor hides; newlines in it are dropped. The commands:
//
//	parse       the statement, or the refusal with the text at its place
//	check       what CheckBody and CheckPlaceholders say of the statement
//	same        whether the texts, parted by lines of ==, are the same definition
//	tokens      kind and text of each token
//	literal     the value of the comment that COMMENT ON VIEW v IS <input> sets
//	engine      the body as the engine gets it
//	split       the pieces of a script
//	incomplete  whether a prompt waits for more
//	fill        the input with placeholders filled, and where its parts come from
//	tombstone   what a null record on the key means
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/scripts", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			input := strings.TrimSuffix(d.Input, "\n")
			if d.HasArg("escaped") {
				s, err := strconv.Unquote(`"` + strings.ReplaceAll(strings.ReplaceAll(input, "\n", ""), `"`, `\"`) + `"`)
				if err != nil {
					d.Fatalf(t, "escaped input: %v", err)
				}
				input = s
			}
			var b strings.Builder
			switch d.Cmd {
			case "parse":
				parse(&b, input)
			case "check":
				check(t, d, &b, input)
			case "same":
				same(t, d, &b, input)
			case "tokens":
				toks, err := ddl.Tokens(input)
				for _, tok := range toks {
					fmt.Fprintf(&b, "%-11s %s\n", kindNames[tok.Kind], visible(tok.Text))
				}
				refusal(&b, input, err)
			case "literal":
				st, err := ddl.Parse("COMMENT ON VIEW v IS " + input)
				if err != nil {
					refusal(&b, "COMMENT ON VIEW v IS "+input, err)
					break
				}
				fmt.Fprintf(&b, "%q\n", *st.(*viewkeeper.Comment).Text)
			case "engine":
				st, err := ddl.Parse(input)
				if err != nil {
					refusal(&b, input, err)
					break
				}
				b.WriteString(visible(st.(*viewkeeper.Create).Body.Text) + "\n")
			case "split":
				for _, p := range ddl.Split(input) {
					what := "statement"
					if p.Query {
						what = "query"
					}
					fmt.Fprintf(&b, "%d %s %s\n", p.Offset, what, visible(p.Text))
				}
			case "incomplete":
				fmt.Fprintln(&b, ddl.Incomplete(input))
			case "fill":
				out, m := ddl.Fill(input, map[string]string{"begin": "2013-01-01 00:00:00+00", "end": "2013-01-02 00:00:00+00", "source": "main.parts"})
				fmt.Fprintln(&b, visible(out))
				for _, p := range ddl.Placeholders(input) {
					fmt.Fprintf(&b, "%s [%d, %d) literal=%v\n", p.Name, p.At, p.End, p.InLiteral)
				}
				if end := m.Source(len(out)); end != len(input) {
					fmt.Fprintf(&b, "the end maps to %d, not %d\n", end, len(input))
				}
			case "tombstone":
				drop, err := ddl.ParseTombstone(input)
				if err != nil {
					refusal(&b, input, err)
					break
				}
				statement(&b, drop)
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			return b.String()
		})
	})
}

var kindNames = map[ddl.TokenKind]string{
	ddl.Word: "word", ddl.QuotedName: "quoted", ddl.String: "string", ddl.Number: "number", ddl.Param: "param",
	ddl.Operator: "operator", ddl.Semicolon: "semicolon", ddl.PlaceholderWord: "placeholder",
}

func parse(b *strings.Builder, text string) {
	st, err := ddl.Parse(text)
	if err != nil {
		refusal(b, text, err)
		return
	}
	statement(b, st)
}

func check(t *testing.T, d *datadriven.TestData, b *strings.Builder, text string) {
	st, err := ddl.Parse(text)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	c := st.(*viewkeeper.Create)
	if err = ddl.CheckBody(c); err == nil {
		err = ddl.CheckPlaceholders(c)
	}
	if err == nil {
		fmt.Fprintln(b, "ok")
		return
	}
	refusal(b, text, err)
}

func same(t *testing.T, d *datadriven.TestData, b *strings.Builder, text string) {
	var first string
	for i, part := range strings.Split(text, "\n==\n") {
		st, err := ddl.Parse(part)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		canonical := st.(*viewkeeper.Create).Canonical
		switch {
		case i == 0:
			first = canonical
			fmt.Fprintln(b, visible(canonical))
		case canonical == first:
			fmt.Fprintln(b, "same")
		default:
			fmt.Fprintln(b, "differs: "+visible(canonical))
		}
	}
}

// refusal shows an error, and the text at its place.
func refusal(b *strings.Builder, text string, err error) {
	if err == nil {
		return
	}
	var e *viewkeeper.Error
	if !errors.As(err, &e) {
		fmt.Fprintf(b, "NOT A REFUSAL: %v\n", err)
		return
	}
	b.WriteString(string(e.Code))
	if e.Offset >= 0 {
		at := text[e.Offset:]
		if len(at) > 20 {
			at = at[:20] + "…"
		}
		fmt.Fprintf(b, " at %d %s", e.Offset, visible(at))
	}
	if !e.Name.IsZero() {
		fmt.Fprintf(b, " of %s", e.Name)
	}
	fmt.Fprintf(b, "\n  %s\n", e.Message)
}

// visible shows text on one line: as it is where that is possible.
func visible(s string) string {
	q := strconv.QuoteToASCII(s)
	if inner := q[1 : len(q)-1]; inner == s {
		return "[" + s + "]"
	}
	if !strings.Contains(s, "`") {
		return "`" + strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(q[1:len(q)-1]) + "`"
	}
	return q
}

func statement(b *strings.Builder, st viewkeeper.Statement) {
	switch st := st.(type) {
	case *viewkeeper.ChangeSet:
		fmt.Fprintf(b, "change set of %d\n", len(st.Statements))
		for _, s := range st.Statements {
			statement(b, s)
		}
	case *viewkeeper.Create:
		fmt.Fprintf(b, "create %s %s at %d", st.Kind, st.Name, st.NameOffset)
		flags(b, map[string]bool{"or replace": st.OrReplace, "if not exists": st.IfNotExists})
		if st.Columns != nil {
			fmt.Fprintf(b, " columns %q", st.Columns)
		}
		b.WriteString("\n")
		fmt.Fprintf(b, "  sql %s at %d\n", visible(st.SQL), st.Offset)
		if st.Kind == viewkeeper.KindView {
			fragment(b, "body", st.Body)
		}
		if m := st.Materialized; m != nil {
			fragment(b, "extract", m.Extract)
			fragment(b, "count", m.CountSrc)
			fragment(b, "merge", m.Merge)
			fmt.Fprintf(b, "  time %q to %q, group %d, source %s, merge %s, on replace %s\n",
				m.MinTimeColumn, m.MaxTimeColumn, m.UpdateGroup, m.SourceDelta, m.MergeDelta, m.OnReplace)
			for _, c := range m.SortOrder {
				fmt.Fprintf(b, "  sort %q desc=%v at %d\n", c.Name, c.Desc, c.Offset)
			}
		}
	case *viewkeeper.Drop:
		fmt.Fprintf(b, "drop %s %v at %v", st.Kind, st.Names, st.Offsets)
		flags(b, map[string]bool{"if exists": st.IfExists, "cascade": st.Cascade})
		b.WriteString("\n")
	case *viewkeeper.Rename:
		fmt.Fprintf(b, "rename %s at %d to %s at %d\n", st.From, st.FromOffset, st.To, st.ToOffset)
	case *viewkeeper.Comment:
		text := "none"
		if st.Text != nil {
			text = strconv.Quote(*st.Text)
		}
		fmt.Fprintf(b, "comment on %s at %d: %s\n", st.Name, st.NameOffset, text)
	}
}

func fragment(b *strings.Builder, what string, f viewkeeper.Fragment) {
	fmt.Fprintf(b, "  %s %s at %d\n", what, visible(f.Text), f.Source(0))
}

func flags(b *strings.Builder, set map[string]bool) {
	var names []string
	for name, on := range set {
		if on {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	for _, name := range names {
		b.WriteString(", " + name)
	}
}
