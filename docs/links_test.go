package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pages gives every Markdown page of the project.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != ".." {
			return filepath.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ".md") {
			out[path] = read(t, path)
		}
		return err
	})
	if err != nil || len(out) < 8 {
		t.Fatalf("%d pages were found: %v", len(out), err)
	}
	return out
}

var (
	fenced  = regexp.MustCompile("(?ms)^```.*?^```")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// TestLinks: every link between files leads to a file, and to a heading in it.
func TestLinks(t *testing.T) {
	all := pages(t)
	for path, page := range all {
		for _, m := range link.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads nowhere", path, m[1])
				continue
			}
			if anchor != "" && !hasAnchor(all[target], anchor) {
				t.Errorf("%s: the link %s leads to no heading", path, m[1])
			}
		}
	}
}

func hasAnchor(page, anchor string) bool {
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		if strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") == anchor {
			return true
		}
	}
	return false
}

// TestNoMachinePaths: what was run on somebody's machine does not show it.
func TestNoMachinePaths(t *testing.T) {
	machine := regexp.MustCompile(`/(root|home/[a-z]+|Users/[A-Za-z]+|work|tmp/[a-z]*build)/`)
	for path, page := range pages(t) {
		for i, line := range strings.Split(page, "\n") {
			if machine.MatchString(line) {
				t.Errorf("%s:%d: %s", path, i+1, line)
			}
		}
	}
}

// TestEmbedding: the README shows the code of examples/embed as it is.
func TestEmbedding(t *testing.T) {
	_, rest, ok := strings.Cut(read(t, "../README.md"), "```go\n")
	block, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("the README has no Go code")
	}
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	if !strings.Contains(flat(read(t, "../examples/embed/main.go")), flat(block)) {
		t.Error("the README's Go code is not that of examples/embed/main.go any more")
	}
}
