package ddl_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

// block is a fenced block of a page.
type block struct {
	info, text string
	line       int
}

func blocks(t *testing.T, page string) []block {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var out []block
	open := -1
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "```") {
			continue
		}
		if open < 0 {
			open = i
			continue
		}
		out = append(out, block{info: strings.TrimPrefix(lines[open], "```"), text: strings.Join(lines[open+1:i], "\n"), line: open + 2})
		open = -1
	}
	if open >= 0 {
		t.Fatalf("%s:%d: the block does not end", page, open+1)
	}
	return out
}

// Every sql block of language.md parses, piece by piece, and its bodies pass; one
// marked refused=CODE is refused so.
func TestLanguagePage(t *testing.T) {
	const page = "../docs/language.md"
	n := 0
	for _, b := range blocks(t, page) {
		refused, marked := strings.CutPrefix(b.info, "sql refused=")
		if b.info != "sql" && !marked {
			continue
		}
		n++
		if marked {
			if _, err := ddl.Parse(b.text); string(viewkeeper.CodeOf(err)) != refused {
				t.Errorf("%s:%d: %v, want %s", page, b.line, err, refused)
			}
			continue
		}
		for _, piece := range ddl.Split(b.text) {
			if err := accepted(piece.Text); err != nil {
				t.Errorf("%s:%d: %v", page, b.line, err)
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d blocks were found", n)
	}
}

func accepted(text string) error {
	st, err := ddl.Parse(text)
	if err != nil {
		return err
	}
	created := []viewkeeper.Statement{st}
	if set, ok := st.(*viewkeeper.ChangeSet); ok {
		created = set.Statements
	}
	for _, s := range created {
		if c, ok := s.(*viewkeeper.Create); ok {
			if err := ddl.CheckBody(c); err != nil {
				return err
			}
			if err := ddl.CheckPlaceholders(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// codes.md has a section for each code and warning of errors.go, in that order, and
// each section a statement and an answer with that code.
func TestCodesPage(t *testing.T) {
	const page = "../docs/codes.md"
	f, err := parser.ParseFile(token.NewFileSet(), "../errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
			if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Code" {
				code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				codes = append(codes, code)
			}
		}
		return true
	})
	if len(codes) < 35 {
		t.Fatalf("only %d codes were found in errors.go", len(codes))
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	at := 0
	for _, code := range codes {
		head := "\n### `" + code + "`\n"
		i := strings.Index(string(text)[at:], head)
		if i < 0 {
			t.Errorf("%s has no section for %s behind those before it", page, code)
			continue
		}
		at += i + len(head)
		section := string(text)[at:]
		if end := strings.Index(section, "\n### "); end >= 0 {
			section = section[:end]
		}
		if !strings.Contains(section, "```sql") || !strings.Contains(section, "```text\n"+code+": ") {
			t.Errorf("%s: the section of %s lacks a statement or the answer to it", page, code)
		}
	}
	if got := strings.Count(string(text), "\n### "); got != len(codes) {
		t.Errorf("%s has %d sections, errors.go %d codes", page, got, len(codes))
	}
}
