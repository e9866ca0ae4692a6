package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// What the attacks are given. A real owner gives a statement 10 s and its engine
// 1 GiB, a node its queries 4 GiB; less makes the list fit in a test, and changes no
// verdict that the gate gives.
const (
	attackDeadline = time.Second            // of a call of a planner
	attackTimeout  = 500 * time.Millisecond // of a query
	attackGrace    = 300 * time.Millisecond // of a query that was told to end
	attackResident = 512 << 20              // bytes, of each engine

	// attackOvershoot is how far over its limit an engine may come before it is
	// killed: what it takes in the 20 ms between two looks, or in as long as a loaded
	// machine makes of them.
	attackOvershoot = 512 << 20

	// attackBound is the longest that anybody waits: the author of an attack, and
	// everybody else meanwhile. A statement may cost some engines (it is tried
	// twice, in fresh ones, when it is parsed and when it is bound); a machine under load makes
	// of each second several.
	attackBound = 2 * time.Minute

	// attackPatience is what a planner's call and a query get in place of the first two
	// when a machine was too slow for these.
	attackPatience = 30 * time.Second
)

// attackWorld is an owner and a node, with the three engines that they have, all in
// children; Kafka alone is left out between them.
type attackWorld struct {
	owner, node *Planner
	serving     *Server
	registry    *registry.Registry

	mu      sync.Mutex // the catalog is for one caller at a time
	catalog *registry.Catalog
	offset  int64

	peaks sync.Mutex
	peak  map[role]int64 // the largest resident size of any child
	lost  map[role]int
}

func newAttackWorld(t *testing.T) *attackWorld {
	t.Helper()
	base, err := os.ReadFile("testdata/attacks.sql")
	if err != nil {
		t.Fatal(err)
	}
	lake := filepath.Join(t.TempDir(), "lake")
	makeAttackLake(t, lake)
	w := &attackWorld{peak: map[role]int64{}, lost: map[role]int{}}
	cfg := func(r role) Config {
		return Config{
			Options:       duckdb.Options{BaseSQL: string(base), LakeDirs: []string{lake}, Threads: 2},
			ResidentLimit: attackResident, CallTimeout: attackDeadline, Grace: attackGrace,
			Log: slog.New(slog.DiscardHandler),
			ended: func(p *process) {
				w.peaks.Lock()
				defer w.peaks.Unlock()
				w.peak[r] = max(w.peak[r], p.peak)
				w.lost[r]++
			},
		}
	}
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	w.owner, err = StartPlanner(ctx, cfg(rolePlanner))
	must(err)
	t.Cleanup(func() { w.owner.Close() })
	w.node, err = StartPlanner(ctx, cfg(rolePlanner))
	must(err)
	t.Cleanup(func() { w.node.Close() })
	serving := cfg(roleServer)
	serving.CallTimeout = 0 // of Apply, which only gets what the planner has accepted
	w.serving, err = StartServer(ctx, serving)
	must(err)
	t.Cleanup(func() { w.serving.Close() })

	quiet := registry.BaseOptions{Log: slog.New(slog.DiscardHandler)}
	ownerBase, err := registry.NewBase(ctx, w.owner, quiet)
	must(err)
	nodeBase, err := registry.NewBase(ctx, w.node, quiet)
	must(err)
	w.catalog, err = registry.LoadCatalog(ctx, ownerBase, nil, registry.CatalogOptions{Owner: "owner", Epoch: 1})
	must(err)
	w.registry = registry.New(nodeBase, registry.RegistryOptions{Applier: w.serving})
	return w
}

// makeAttackLake makes the folder that SQL may read under, and one beside it that it
// may not, with a way out through a symbolic link.
func makeAttackLake(t *testing.T, lake string) {
	t.Helper()
	secret := filepath.Join(filepath.Dir(lake), "secret")
	for _, dir := range []string{lake, secret} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{
		filepath.Join(lake, "good.csv"): "a,b\n1,x\n2,y\n", filepath.Join(secret, "secret.csv"): "password\nhunter2\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link.csv": filepath.Join(secret, "secret.csv"), "out": secret} {
		if err := os.Symlink(to, filepath.Join(lake, link)); err != nil {
			t.Fatal(err)
		}
	}
}

// judge submits a statement to the owner, and has the node build what is accepted.
// patience is the deadline of the planners' calls, 0 for the usual one.
func (w *attackWorld) judge(sql string, patience time.Duration) (viewkeeper.Decision, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range []*Planner{w.owner, w.node} {
		p.mu.Lock()
		p.callTimeout = max(attackDeadline, patience)
		p.mu.Unlock()
	}
	w.offset++
	out, err := w.catalog.Judge(context.Background(), viewkeeper.Submission{
		ID: fmt.Sprint("s", w.offset), SQL: sql, Offset: w.offset, At: time.Unix(w.offset, 0).UTC(),
	})
	if err != nil {
		return viewkeeper.Decision{}, fmt.Errorf("the owner can't go on: %w", err)
	}
	if len(out.Rows) > 0 {
		err = w.registry.Advance(context.Background(), out.Decision.Version, out.Rows)
	}
	if err != nil {
		return viewkeeper.Decision{}, fmt.Errorf("the node can't go on: %w", err)
	}
	return out.Decision, nil
}

// query asks the node, and counts the rows.
func (w *attackWorld) query(sql string, timeout time.Duration) (rows int64, err error) {
	r, err := w.serving.Query(context.Background(), duckdb.QueryRequest{SQL: sql, Timeout: timeout})
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	reader, err := ipc.NewReader(r.Body)
	if err != nil {
		return 0, err
	}
	defer reader.Release()
	for reader.Next() {
		rows += reader.RecordBatch().NumRows()
	}
	return rows, reader.Err()
}

// statementOutcome runs a statement, and when it made definitions reads them, says what came of it,
// and drops them again.
func (w *attackWorld) statementOutcome(sql string, patience time.Duration) (string, error) {
	d, err := w.judge(sql, patience)
	if err != nil {
		return "", err
	}
	if d.Verdict == viewkeeper.Refused {
		if d.Code == viewkeeper.CodeEngineKilled || d.Code == viewkeeper.CodeEngineTimeout {
			return stopped, nil
		}
		return string(d.Code) + ": " + short(d.Message), nil
	}
	out := string(d.Verdict)
	var made []string
	for _, c := range d.Changed {
		if len(c.ColumnsAfter) > 0 {
			made = append(made, c.Name.String())
		}
	}
	failures := w.registry.FailedDefinitions()
	for _, f := range failures {
		out += fmt.Sprintf("; %s is broken on the node: %s: %s", f.Name, f.Code, short(f.Reason))
	}
	if len(made) > 0 {
		if last := made[len(made)-1]; len(failures) == 0 && last != "main.attack" { // that is asked as a query
			read, err := w.queryOutcome("FROM "+last, patience)
			if err != nil {
				return "", err
			}
			out += "; reading it: " + read
		}
		if d, err := w.judge("DROP VIEW "+strings.Join(made, ", ")+" CASCADE", attackPatience); err != nil || d.Verdict != viewkeeper.Accepted {
			return "", fmt.Errorf("dropping it again: %v: %s", err, d.Message)
		}
	}
	return out, nil
}

// stopped is the outcome of what is ended by a limit of time or memory, whichever a
// machine comes to first.
const stopped = "stopped"

// queryOutcome runs a query and says what came of it.
func (w *attackWorld) queryOutcome(sql string, patience time.Duration) (string, error) {
	rows, err := w.query(sql, max(attackTimeout, patience))
	var plan *registry.PlanError
	lost := registry.AsLost(err)
	switch {
	case err == nil:
		return fmt.Sprintf("%d rows", rows), nil
	case errors.Is(err, context.DeadlineExceeded), lost != nil:
		return stopped, nil
	case errors.As(err, &plan) && plan.Code == duckdb.CodeMemory:
		return stopped, nil
	case errors.As(err, &plan):
		return string(plan.Code) + ": " + short(plan.Message), nil
	}
	return "", fmt.Errorf("the node's own trouble: %w", err)
}

// short keeps what a reader of the script needs of a message.
func short(message string) string {
	if runes := []rune(message); len(runes) > 110 {
		return string(runes[:110]) + "…"
	}
	return message
}

// prober is somebody else, who asks the same owner and node all the time.
type prober struct {
	mu      sync.Mutex
	longest map[string]time.Duration
	total   map[string][]time.Duration
	failed  map[string][]error
}

func (p *prober) note(what string, began time.Time, err error) {
	took := time.Since(began)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.longest[what] = max(p.longest[what], took)
	p.total[what] = append(p.total[what], took)
	if err != nil {
		p.failed[what] = append(p.failed[what], err)
	}
}

func (p *prober) quantile(what string, q float64) time.Duration {
	all := slices.Sorted(slices.Values(p.total[what]))
	if len(all) == 0 {
		return 0
	}
	return all[min(len(all)-1, int(q*float64(len(all))))]
}

// probe asks until stop is closed, each again when it was answered, at most once
// every tick.
func (w *attackWorld) probe(stop <-chan struct{}, tick time.Duration) *prober {
	p := &prober{longest: map[string]time.Duration{}, total: map[string][]time.Duration{}, failed: map[string][]error{}}
	var group sync.WaitGroup
	ask := func(what string, f func(n int) error) {
		group.Go(func() {
			ticker := time.NewTicker(tick)
			defer ticker.Stop()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-ticker.C:
				}
				began := time.Now()
				p.note(what, began, f(n))
			}
		})
	}
	ask("statement", func(n int) error {
		d, err := w.judge(fmt.Sprintf("CREATE OR REPLACE VIEW probe AS SELECT a + %d AS n FROM t", n), attackPatience)
		if err == nil && d.Verdict != viewkeeper.Accepted {
			err = fmt.Errorf("%s: %s", d.Code, d.Message)
		}
		return err
	})
	ask("query", func(int) error {
		rows, err := w.query("SELECT count(*) FROM t", attackBound)
		if err == nil && rows != 1 {
			err = fmt.Errorf("%d rows", rows)
		}
		return err
	})
	<-stop
	group.Wait()
	return p
}
