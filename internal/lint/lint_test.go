// Package lint holds the house rules that a program can check. The rules that
// people hold each other to are in CONTRIBUTING.md.
package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/viewkeeper/viewkeeper"

// layers is the import rule of DESIGN.md: a package may import the packages of
// the module that its row names (a trailing /... takes in what is below), and
// nothing else of it. The arrows point one way, so that the path of a statement
// can be read straight down the tree, and siblings do not know each other, so
// that each can be embedded and tested alone. registry stands above ddl, not
// beside it: the law speaks of tokens (when two texts are the same, how a rename
// rewrites), and a second tokenizer would be a second truth.
var layers = map[string][]string{
	"":                         {},
	"ddl":                      {""},
	"codec":                    {""},
	"registry":                 {"", "ddl"},
	"registry/duckdb":          {"", "ddl", "registry"},
	"registry/duckdb/engine":   {"", "ddl", "internal/reasons", "registry", "registry/duckdb"},
	"registry/registrytest":    {"", "ddl", "registry"},
	"internal/fold":            {"", "codec"},
	"internal/fold/modelcheck": {"", "codec", "internal/fold"},
	"internal/kafka/kafkatest": {"", "internal/kafka"},
	"internal/kafka":           {"", "codec"},
	"internal/broker":          {""},
	"internal/kafkaproxy":      {},
	"internal/testlog":         {},
	"internal/freeport":        {},
	"internal/restore":         {"", "codec", "internal/fold", "internal/kafka"},
	"internal/tablecopy":       {"", "codec"},
	"internal/plancache":       {},
	"internal/reasons":         {""},
	"processor":                {"", "ddl", "codec", "registry", "internal/fold", "internal/kafka", "internal/reasons"},
	"view":                     {"", "ddl", "codec", "registry", "internal/fold", "internal/kafka", "internal/reasons", "internal/plancache", "internal/tablecopy", "view/internal/history"},
	"view/internal/history":    {"", "ddl"},
	"server":                   {"", "ddl", "codec", "registry", "server/internal/rowtext"},
	"server/internal/rowtext":  {},
	"e2e/internal/fleet":       {"", "internal/freeport"},
	"e2e/torture/history":      {""},
}

// duckdbOnly is the engine's library: only the packages under registry/duckdb
// know which engine it is, and what compares it with the bare one.
const duckdbOnly = "github.com/duckdb/"

type file struct {
	path string // from the module's root
	pkg  string
	test bool
	ast  *ast.File
	fset *token.FileSet
	text string
}

func files(t *testing.T) []file {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var out []file
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin") && path != root {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(rel))
		if pkg == "." {
			pkg = ""
		}
		out = append(out, file{filepath.ToSlash(rel), pkg, strings.HasSuffix(path, "_test.go"), parsed, fset, string(text)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 10 {
		t.Fatalf("found %d files: the walk is wrong", len(out))
	}
	return out
}

// TestImports holds the import rule. Tests may import what they like, since an
// end-to-end test sits above everything.
func TestImports(t *testing.T) {
	for _, f := range files(t) {
		if f.test {
			continue
		}
		for _, imp := range f.ast.Imports {
			path, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(path, duckdbOnly) && !strings.HasPrefix(f.pkg, "registry/duckdb") && f.pkg != "e2e/bench" {
				t.Errorf("%s imports %s: only packages under registry/duckdb know the engine", f.path, path)
			}
			if path != module && !strings.HasPrefix(path, module+"/") {
				continue
			}
			target := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
			if strings.HasPrefix(f.pkg, "cmd/") || strings.HasPrefix(f.pkg, "examples/") || f.pkg == "e2e" || f.pkg == "e2e/bench" {
				continue // wiring may import everything
			}
			allowed, known := layers[f.pkg]
			if !known {
				t.Errorf("%s: package %q has no row in the import rule", f.path, f.pkg)
				break
			}
			if !permits(allowed, target) {
				t.Errorf("%s imports %q, which package %q may not: see the import rule in internal/lint", f.path, target, f.pkg)
			}
		}
	}
}

func permits(allowed []string, target string) bool {
	for _, a := range allowed {
		if target == a {
			return true
		}
	}
	return false
}

// TestNoInit: a package does nothing before it is asked to.
func TestNoInit(t *testing.T) {
	for _, f := range files(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: init() does work at start; call it from where it is needed", f.fset.Position(fn.Pos()))
			}
		}
	}
}

// TestNoSleepInTests: a test waits for a signal, never for a time.
func TestNoSleepInTests(t *testing.T) {
	for _, f := range files(t) {
		if !f.test {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok || sel.Sel.Name != "Sleep" {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" {
				t.Errorf("%s: time.Sleep in a test; wait for a signal", f.fset.Position(sel.Pos()))
			}
			return true
		})
	}
}

// TestFilesStaySmall: a file is one idea.
func TestFilesStaySmall(t *testing.T) {
	const most = 900
	for _, f := range files(t) {
		if n := strings.Count(f.text, "\n"); n > most {
			t.Errorf("%s has %d lines; split it by its ideas (at most %d)", f.path, n, most)
		}
	}
}

// TestNothingLeftOpen: what is not done is in the issue tracker, not in the code.
func TestNothingLeftOpen(t *testing.T) {
	open := regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	for _, f := range files(t) {
		for i, line := range strings.Split(f.text, "\n") {
			if open.MatchString(line) {
				t.Errorf("%s:%d: %s", f.path, i+1, strings.TrimSpace(line))
			}
		}
	}
}

// TestExportedHaveDocs: whatever a program that embeds us can name says what it is.
func TestExportedHaveDocs(t *testing.T) {
	for _, f := range files(t) {
		if f.test || strings.HasPrefix(f.pkg, "cmd/") || strings.HasPrefix(f.pkg, "internal/") || strings.HasPrefix(f.pkg, "examples/") || f.pkg == "e2e" || f.pkg == "e2e/bench" {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
					t.Errorf("%s: %s has no comment", f.fset.Position(d.Pos()), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if ts, ok := s.(*ast.TypeSpec); ok && ts.Name.IsExported() && d.Doc == nil && ts.Doc == nil && ts.Comment == nil {
						t.Errorf("%s: %s has no comment", f.fset.Position(ts.Pos()), ts.Name.Name)
					}
				}
			}
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if idx, ok := typ.(*ast.IndexExpr); ok {
		typ = idx.X
	}
	id, ok := typ.(*ast.Ident)
	return ok && id.IsExported()
}
