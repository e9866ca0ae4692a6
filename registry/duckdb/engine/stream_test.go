package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

func residentBytes(t testing.TB, pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Skip("no /proc here:", err)
	}
	pages, err := strconv.ParseInt(string(bytes.Fields(b)[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// A long answer is whole in neither process, also when its reader is slower than
// the engine: nothing is dropped, and the engine waits.
func TestLongAnswerIsStreamed(t *testing.T) {
	s := startTestServer(t, nil)
	child := s.supervisor.currentForTest(t)
	const rows = 20_000_000
	r, err := s.Query(context.Background(), duckdb.QueryRequest{SQL: fmt.Sprintf("SELECT range AS a, range * 2 AS b, range::DOUBLE AS c FROM range(%d)", rows)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	reader, err := ipc.NewReader(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	var got, batches, here, there int64
	startHere, startThere := residentBytes(t, os.Getpid()), residentBytes(t, child.pid())
	for reader.Next() {
		got += reader.RecordBatch().NumRows()
		if batches++; batches%50 == 0 {
			here = max(here, residentBytes(t, os.Getpid())-startHere)
			there = max(there, residentBytes(t, child.pid())-startThere)
		}
	}
	if err := reader.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows; %d MiB more in the keeper, %d MiB more in the engine", got, here>>20, there>>20)
	if got != rows {
		t.Errorf("%d rows", got)
	}
	if here > 150<<20 || there > 200<<20 {
		t.Errorf("the answer took %d MiB in the keeper, %d MiB in the engine", here>>20, there>>20)
	}
}
