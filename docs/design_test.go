package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDesignNames: the files, functions and tests that the design points to are there.
func TestDesignNames(t *testing.T) {
	files, words := map[string]bool{}, map[string]bool{}
	word := regexp.MustCompile(`[A-Za-z0-9_]+`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		b, err := os.ReadFile(path)
		for _, w := range word.FindAllString(string(b), -1) {
			words[w] = true
		}
		files[d.Name()] = true
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`[a-z_0-9]+\.go\b`)
	function := regexp.MustCompile("`((?:Test|Fuzz)?[A-Za-z0-9]+)`")
	script := regexp.MustCompile(`fold/testdata/[0-9a-z_]+`)
	for _, page := range []string{"../DESIGN.md", "../CONTRIBUTING.md"} {
		text := read(t, page)
		for _, n := range name.FindAllString(text, -1) {
			if !files[n] {
				t.Errorf("%s speaks of %s, and there is no such file", page, n)
			}
		}
		for _, m := range function.FindAllStringSubmatch(text, -1) {
			if !words[m[1]] {
				t.Errorf("%s speaks of %s, and nothing in the code is called so", page, m[1])
			}
		}
		for _, s := range script.FindAllString(text, -1) {
			if _, err := os.Stat("../internal/" + s); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}
