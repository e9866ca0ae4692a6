package engine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// A child's refusal names its definitions on this side as well. One that only the
// next child refuses, since the file went with the engine, is told of: to apply
// everything again finds it, and what was refused is not given to later children.
func TestRefusedByTheChild(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	file := filepath.Join(dir, "x.csv")
	if err := os.WriteFile(file, []byte("a\n5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	told := make(chan struct{}, 10)
	s := startTestServer(t, func(c *Config) {
		c.Options.LakeDirs = []string{dir}
		c.Refused = func() { told <- struct{}{} }
	})
	all := []registry.Apply{view("x", "SELECT a FROM 'x.csv'"), view("over", "SELECT a FROM main.x"), view("fine", "SELECT 7 AS a")}

	bad := []registry.Apply{view("bad", "SELECT a FROM 'y.csv'")}
	e := registry.AsRefused(s.Apply(ctx, 1, true, append(bad, all...)))
	if e == nil || len(e.Refused) != 1 || e.Refused[0].Name != viewkeeper.MakeName("", "bad") || !strings.Contains(e.Refused[0].Reason, "y.csv") {
		t.Fatal(e)
	}
	if err := s.Apply(ctx, 1, true, all); err != nil {
		t.Fatal(err)
	}
	lose := func() {
		t.Helper()
		child := s.supervisor.currentForTest(t)
		if err := s.supervisor.faultForTest(ctx, t, "crash"); registry.AsLost(err) == nil {
			t.Fatal(err)
		}
		<-child.exited
		s.supervisor.currentForTest(t)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	lose()
	select {
	case <-told:
	default:
		t.Fatal("nobody was told")
	}
	if value, version := ask(t, s, "FROM fine"); value != "7" || version != 1 {
		t.Error(value, version)
	}
	e = registry.AsRefused(s.Apply(ctx, 2, true, all))
	if e == nil || e.Refused[0].Name != viewkeeper.MakeName("", "x") {
		t.Fatal(e)
	}
	if err := s.Apply(ctx, 2, true, all[2:]); err != nil {
		t.Fatal(err)
	}
	lose()
	if value, version := ask(t, s, "FROM fine"); value != "7" || version != 2 {
		t.Error(value, version)
	}
	if len(told) > 0 {
		t.Error("told again")
	}
}
