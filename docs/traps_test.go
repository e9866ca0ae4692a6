package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTraps: each test that the table of traps names is a test of the package that it is
// said to be of.
func TestTraps(t *testing.T) {
	pkg := regexp.MustCompile(`^[a-z0-9][a-z0-9/]*$`)
	name := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9]+)`")
	tests := map[string]string{} // the text of a package's tests
	text := func(dir string) string {
		if _, known := tests[dir]; !known {
			paths, err := filepath.Glob(filepath.Join("..", dir, "*_test.go"))
			if err != nil || len(paths) == 0 {
				t.Errorf("no test in %s: %v", dir, err)
			}
			for _, path := range paths {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				tests[dir] += string(b)
			}
		}
		return tests[dir]
	}
	rows, named := 0, 0
	for _, line := range strings.Split(read(t, "traps.md"), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) < 3 || cells[0] == "trap" {
			continue
		}
		rows++
		// One package and its tests, after another: "processor `TestX`, `TestY`; view `TestZ`".
		for _, part := range strings.Split(cells[2], ";") {
			dir, _, _ := strings.Cut(strings.TrimSpace(part), " ")
			if !pkg.MatchString(dir) {
				t.Errorf("%q names no package: %s", part, cells[0])
				continue
			}
			for _, m := range name.FindAllStringSubmatch(part, -1) {
				named++
				if !strings.Contains(text(dir), "func "+m[1]+"(") {
					t.Errorf("%s has no %s, which is to show: %s", dir, m[1], cells[0])
				}
			}
		}
	}
	if rows < 40 || named < 60 {
		t.Errorf("%d rows, %d tests: the table was not found", rows, named)
	}
}
