package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// streamQuery has four columns of mixed types. A cross join is read by all threads.
const streamQuery = `SELECT a.i * 1000000 + b.i AS id, b.i * 0.25 AS amount, 'customer ' || b.i %% 5000 AS name, make_timestamp((a.i * 1000000 + b.i) * 1000) AS at
FROM range(%d) a(i), range(1000000) b(i)`

// p8 measures a large result through a node's HTTP Arrow stream, in turns with bare
// DuckDB that writes it as Arrow IPC in this process to nowhere: through the writer
// that the node has, and through DuckDB's own conversion.
func p8(ctx context.Context, env *Env) ([]Figure, error) {
	c, err := env.NewCatalog(ctx, "")
	if err != nil {
		return nil, err
	}
	node, err := c.Serve(ctx, "p8-node", "node,owner")
	if err != nil {
		return nil, err
	}
	defer node.Stop()
	bare, err := OpenBare(engineMemory)
	if err != nil {
		return nil, err
	}
	defer bare.Close()
	writing, err := duckdb.OpenServer(ctx, duckdb.Options{MemoryLimit: engineMemory})
	if err != nil {
		return nil, err
	}
	defer writing.Close()

	millions := env.pick(5, 50)
	sql := fmt.Sprintf(streamQuery, millions)
	var through, own, duckdbs, firsts, firstBare durations
	var growth, growthBare []float64
	var cpu, cpuOwn durations
	for i := range env.pick(3, 5) + 1 {
		m, err := node.watchMemory()
		if err != nil {
			return nil, err
		}
		before := node.processorTime()
		first, all, err := node.readStream(ctx, sql, int64(millions)*1_000_000)
		if err != nil {
			return nil, err
		}
		used := node.processorTime() - before
		grown, err := m.growth()
		if err != nil {
			return nil, err
		}
		m, err = watchMemory(os.Getpid())
		if err != nil {
			return nil, err
		}
		began, before := time.Now(), processorTime()
		if err := writeStream(ctx, writing, sql); err != nil {
			return nil, err
		}
		ownTook, ownUsed := time.Since(began), processorTime()-before
		a, err := bare.Query(ctx, sql)
		if err != nil {
			return nil, err
		}
		grownBare, err := m.growth()
		if err != nil {
			return nil, err
		}
		arrow, err := bare.Arrow(ctx, sql, io.Discard)
		if err != nil {
			return nil, err
		}
		env.Log("P8: through the node %v (first row %v, %.1f MB, cpu %v), written in process %v (cpu %v), DuckDB's own Arrow %v, rows read only %v (first %v, %.1f MB)",
			all, first, grown, used, ownTook, ownUsed, arrow.all, a.all, a.first, grownBare)
		if i == 0 {
			continue // warm up
		}
		through, own, duckdbs = append(through, all), append(own, ownTook), append(duckdbs, arrow.all)
		firsts, firstBare = append(firsts, first), append(firstBare, a.first)
		growth, growthBare = append(growth, grown), append(growthBare, grownBare)
		cpu, cpuOwn = append(cpu, used), append(cpuOwn, ownUsed)
	}
	rate := func(d durations) float64 { return float64(millions) / d.at(.5) * 1000 }
	slices.Sort(growth)
	slices.Sort(growthBare)
	mid := len(growth) / 2
	rows := fmt.Sprintf("%d million rows as Arrow: ", millions)
	return []Figure{
		{
			ID: "P8", What: rows + "first row", Got: firsts.at(.5), Baseline: firstBare.at(.5), Unit: "ms", Against: "bare DuckDB's first chunk",
			Limit: firstBare.at(.5) + 10, Target: "≤ + 10 ms",
		},
		{
			ID: "P8", What: rows + "million rows a second", Got: rate(through), Baseline: rate(own), Unit: "", Against: "bare DuckDB, the same writer", AtLeast: true,
			Limit: .8 * rate(own), Target: "≥ 0.8 ×",
			Note: fmt.Sprintf("four columns (BIGINT, DOUBLE, VARCHAR, TIMESTAMP); processor time %.1f s of the node's two processes, %.1f s of the same writer in process", cpu.at(.5)/1000, cpuOwn.at(.5)/1000),
		},
		{
			ID: "P8", What: rows + "million rows a second", Got: rate(through), Baseline: rate(duckdbs), Unit: "", Against: "bare DuckDB, its own Arrow", AtLeast: true,
			Limit: .8 * rate(duckdbs), Target: "≥ 0.8 ×",
		},
		{
			ID: "P8", What: rows + "memory of keeper and engine over idle", Got: growth[mid], Baseline: growthBare[mid], Unit: "MB", Against: "bare DuckDB over idle",
			Limit: growthBare[mid] + 50, Target: "≤ + 50 MB",
		},
	}, nil
}

// readStream reads a whole answer as an Arrow reader does and counts its rows.
func (p *Proc) readStream(ctx context.Context, sql string, want int64) (first, all time.Duration, err error) {
	began := time.Now()
	body, err := p.ask(ctx, asArrow, sql)
	if err != nil {
		return 0, 0, err
	}
	defer body.Close()
	reader, err := ipc.NewReader(body)
	if err != nil {
		return 0, 0, err
	}
	defer reader.Release()
	var rows int64
	for reader.Next() {
		if rows == 0 {
			first = time.Since(began)
		}
		rows += reader.RecordBatch().NumRows()
	}
	if err := reader.Err(); err != nil {
		return 0, 0, err
	}
	if rows != want {
		return 0, 0, fmt.Errorf("%d rows instead of %d", rows, want)
	}
	return first, time.Since(began), nil
}

// writeStream has the node's own writer write an answer to nowhere.
func writeStream(ctx context.Context, s *duckdb.Server, sql string) error {
	result, err := s.Query(ctx, duckdb.QueryRequest{SQL: sql})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, result.Body)
	return errors.Join(err, result.Body.Close())
}

// memory is the resident size of processes since a moment.
type memory struct {
	pids   []int
	before float64
}

// watchMemory begins anew to note the largest resident size of processes.
func watchMemory(pids ...int) (memory, error) {
	m := memory{pids: pids}
	for _, pid := range pids {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
			return m, err
		}
	}
	var err error
	m.before, err = m.read("VmRSS:")
	return m, err
}

// growth is how many MB the largest size since then is above the size then.
func (m memory) growth() (float64, error) {
	peak, err := m.read("VmHWM:")
	return peak - m.before, err
}

func (m memory) read(field string) (float64, error) {
	var total float64
	for _, pid := range m.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(text), field)
		words := strings.Fields(rest)
		if len(words) == 0 {
			return 0, fmt.Errorf("no %s of process %d", field, pid)
		}
		kb, err := strconv.Atoi(words[0])
		if err != nil {
			return 0, err
		}
		total += float64(kb) / 1024
	}
	return total, nil
}

// family is a process and its engines.
func (p *Proc) family() []int {
	pids := []int{p.PID()}
	// Each thread has its own children.
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.PID()))
	if err != nil {
		return pids
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list) // of a thread that is gone
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func (p *Proc) watchMemory() (memory, error) { return watchMemory(p.family()...) }

// processorTime is what a process and its engines have used.
func (p *Proc) processorTime() time.Duration {
	const tick = 10 * time.Millisecond // USER_HZ is 100 everywhere
	var total time.Duration
	for _, pid := range p.family() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		words := strings.Fields(rest)
		if len(words) < 13 {
			continue
		}
		user, _ := strconv.Atoi(words[11])
		system, _ := strconv.Atoi(words[12])
		total += time.Duration(user+system) * tick
	}
	return total
}
