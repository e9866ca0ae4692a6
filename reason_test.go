package viewkeeper_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
)

// Each constant of a reason has its line in reason.go, once, with what to do.
func TestEveryReasonHasAnAdvice(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "status.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var constants []string
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Reason") && len(v.Values) == 1 {
			code, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			constants = append(constants, code)
			if viewkeeper.Advice(code) == "" {
				t.Errorf("%s has no line in reason.go", v.Names[0].Name)
			}
		}
		return true
	})
	if len(constants) < 24 {
		t.Fatalf("only %d constants were found", len(constants))
	}
	listed := viewkeeper.Reasons()
	slices.Sort(listed)
	slices.Sort(constants)
	if !slices.Equal(listed, constants) {
		t.Errorf("reason.go has %v, status.go %v", listed, constants)
	}
}
