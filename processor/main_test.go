package processor

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain lets more tests run at a time than there are cores: most of each is waiting
// for a group to come together.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}
