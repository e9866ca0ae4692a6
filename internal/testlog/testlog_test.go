package testlog_test

import (
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/viewkeeper/viewkeeper/internal/testlog"
)

type fake struct {
	lines []string
	end   func()
}

func (f *fake) Logf(format string, a ...any) { f.lines = append(f.lines, fmt.Sprintf(format, a...)) }
func (f *fake) Cleanup(end func())           { f.end = end }

func TestNothingIsLoggedAfterTheEnd(t *testing.T) {
	f := &fake{}
	w := testlog.New(f)
	for _, line := range []string{"one\n", "two"} {
		if n, err := io.WriteString(w, line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	f.end()
	if n, err := io.WriteString(w, "late"); n != 4 || err != nil {
		t.Fatal(n, err)
	}
	if !slices.Equal(f.lines, []string{"one", "two"}) {
		t.Errorf("%q", f.lines)
	}
}
