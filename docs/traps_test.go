package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// shownBy holds the last column of a page's tables to the code: "processor `TestX`,
// `TestY`; view `TestZ`" names tests of these packages. It gives the first cell of each
// row, and how many tests are named.
func shownBy(t *testing.T, page string) (firsts []string, named int) {
	t.Helper()
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
	for _, line := range strings.Split(read(t, page), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) < 3 || cells[len(cells)-1] == "shown by" {
			continue
		}
		firsts = append(firsts, cells[0])
		for _, part := range strings.Split(cells[len(cells)-1], ";") {
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
	return firsts, named
}

// TestTraps: each test that the table of traps names is a test of the package that it is
// said to be of.
func TestTraps(t *testing.T) {
	if rows, named := shownBy(t, "traps.md"); len(rows) < 40 || named < 60 {
		t.Errorf("%d rows, %d tests: the table was not found", len(rows), named)
	}
}

// TestFieldFaults: the same of the faults of the field, and each of them is there.
func TestFieldFaults(t *testing.T) {
	rows, named := shownBy(t, "faults.md")
	var want []string
	for _, n := range []int{1, 2, 3, 5, 8, 9, 10, 11, 12, 14, 15, 16, 17, 20, 21, 24, 25, 27, 29, 30, 31, 32, 34, 35, 37, 38, 39, 41, 43, 44, 45, 47, 48, 49, 51, 53, 54} {
		want = append(want, fmt.Sprint("C", n))
	}
	compare(t, "fault", rows, want)
	if named < 2*len(want) {
		t.Errorf("%d tests are named for %d faults", named, len(want))
	}
}
