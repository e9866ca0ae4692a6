package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
)

// What the pages must list is read from the sources, so that no test of this
// package has to link the binary.

// sources parses the Go files of a folder, tests left out.
func sources(t *testing.T, dir string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no Go file in %s: %v", dir, err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// goFiles gives the path of every Go file that is no test.
func goFiles(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// setting is one setting as cmd/viewkeeper declares it.
type setting struct {
	name, value, usage string
	commands           []string
}

// command is one subcommand.
type command struct{ use, short string }

// settings reads every setting, and which commands take it.
func settings(t *testing.T) ([]setting, []command) {
	t.Helper()
	var list []setting
	var commands []command
	files := sources(t, "../cmd/viewkeeper")
	takes := map[string][]string{}
	shared := sharedSettings(files)
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if fn.Name.Name == "define" {
				list = declared(t, fn)
				continue
			}
			c := commandOf(fn)
			if c.use == "" {
				continue
			}
			name, _, _ := strings.Cut(c.use, " ")
			if c.short != "" && name != "viewkeeper" && name != "engine" { // engine is hidden
				commands = append(commands, c)
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && selector(call) == "use" {
					for _, s := range append(literals(call), shared[calls(call)]...) {
						takes[s] = append(takes[s], name)
					}
				}
				return true
			})
		}
	}
	if len(list) < 30 || len(commands) < 15 {
		t.Fatalf("%d settings and %d commands were found: the reading is wrong", len(list), len(commands))
	}
	for i := range list {
		list[i].commands = slices.Compact(slices.Sorted(slices.Values(takes[list[i].name])))
	}
	slices.SortFunc(list, func(a, b setting) int { return strings.Compare(a.name, b.name) })
	slices.SortFunc(commands, func(a, b command) int { return strings.Compare(a.use, b.use) })
	return list, commands
}

// sharedSettings reads the functions that name settings for several commands.
func sharedSettings(files []*ast.File) map[string][]string {
	shared := map[string][]string{}
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasSuffix(fn.Name.Name, "Settings") {
				shared[fn.Name.Name] = literals(fn)
			}
		}
	}
	return shared
}

// calls names a function with settings that is called in the arguments of a call.
func calls(call *ast.CallExpr) (name string) {
	ast.Inspect(call, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			if id, ok := c.Fun.(*ast.Ident); ok && strings.HasSuffix(id.Name, "Settings") {
				name = id.Name
			}
		}
		return true
	})
	return name
}

// declared reads the calls f.StringVar(&s.X, name, default, usage) and their kin.
func declared(t *testing.T, fn *ast.FuncDecl) (list []setting) {
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !strings.Contains(selector(call), "Var") {
			return true
		}
		args := call.Args
		s := setting{name: text(args[1]), usage: strings.ReplaceAll(text(args[len(args)-1]), "`", "")}
		s.value = value(t, args[len(args)-2])
		list = append(list, s)
		return true
	})
	return list
}

// value writes a default as the page has it.
func value(t *testing.T, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return text(e)
		}
		return e.Value
	case *ast.Ident:
		if e.Name == "nil" {
			return ""
		}
		return e.Name
	case *ast.CompositeLit:
		return strings.Join(literals(e), ",")
	case *ast.CallExpr: // defaultAuthor()
		return "who is logged in"
	case *ast.SelectorExpr: // ddl.DefaultLimits().MaxBody
		return number(t, types.ExprString(e))
	case *ast.BinaryExpr: // 5*time.Minute
		n := e.X.(*ast.BasicLit).Value
		return n + map[string]string{"Second": "s", "Minute": "m", "Hour": "h"}[e.Y.(*ast.SelectorExpr).Sel.Name]
	}
	t.Errorf("a default of a kind that this test does not know: %T", e)
	return ""
}

// number gives the value of an expression of another package that is a default.
func number(t *testing.T, expression string) string {
	known := map[string]int{
		"ddl.DefaultLimits().MaxBody":      ddl.DefaultLimits().MaxBody,
		"ddl.DefaultLimits().MaxChangeSet": ddl.DefaultLimits().MaxChangeSet,
		"registry.DefaultLimits.Depth":     registry.DefaultLimits.Depth,
		"registry.DefaultLimits.Leaves":    registry.DefaultLimits.Leaves,
		"registry.DefaultLimits.Layers":    registry.DefaultLimits.Layers,
	}
	if n, ok := known[expression]; ok {
		return strconv.Itoa(n)
	}
	// The engine's own are read from its source, since to import it is to link it.
	if name, ok := strings.CutPrefix(expression, "duckdb."); ok {
		for _, f := range sources(t, "../registry/duckdb") {
			if o := f.Scope.Lookup(name); o != nil && o.Kind == ast.Con {
				if spec := o.Decl.(*ast.ValueSpec); len(spec.Values) == 1 {
					return types.ExprString(spec.Values[0])
				}
			}
		}
	}
	t.Errorf("the value of the default %s is not known to this test", expression)
	return ""
}

// commandOf reads the Use and Short of the first command that a function makes.
func commandOf(fn *ast.FuncDecl) (c command) {
	ast.Inspect(fn, func(n ast.Node) bool {
		kv, ok := n.(*ast.KeyValueExpr)
		if !ok {
			return true
		}
		key, _ := kv.Key.(*ast.Ident)
		switch {
		case key == nil:
		case key.Name == "Use" && c.use == "":
			c.use = text(kv.Value)
		case key.Name == "Short" && c.short == "":
			c.short = text(kv.Value)
		}
		return true
	})
	return c
}

func selector(call *ast.CallExpr) string {
	if s, ok := call.Fun.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return ""
}

func literals(n ast.Node) (out []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			out = append(out, text(l))
		}
		return true
	})
	return out
}

func text(e ast.Expr) string {
	l, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	s, _ := strconv.Unquote(l.Value)
	return s
}

// constants reads the string constants of a folder whose names begin so.
func constants(t *testing.T, dir, prefix string) (values []string) {
	t.Helper()
	for _, f := range sources(t, dir) {
		for _, d := range f.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.CONST {
				continue
			}
			for _, s := range gen.Specs {
				v := s.(*ast.ValueSpec)
				if strings.HasPrefix(v.Names[0].Name, prefix) && len(v.Values) == 1 {
					if s := text(v.Values[0]); s != "" {
						values = append(values, s)
					}
				}
			}
		}
	}
	return values
}
