// Command nycflights13 is the story that `make run` tells: it starts viewkeeper
// with two nodes on the sample lake, applies the definitions beside it, and shows
// what is accepted, what is refused and why, and how a change on one node reaches
// the other. It exits non-zero when a step comes out otherwise.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

func main() {
	var (
		binary = flag.String("viewkeeper", "bin/viewkeeper", "the binary")
		dir    = flag.String("dir", "viewkeeper-dev", "where dev keeps its data; a second run goes on there")
		sample = flag.String("sample", "examples/nycflights13", "the folder of base.sql, lake and definitions")
		once   = flag.Bool("once", false, "end after the story")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *binary, *dir, *sample, *once); err != nil {
		fmt.Fprintln(os.Stderr, "\nthe story came out otherwise:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, binary, dir, sample string, once bool) (err error) {
	dev, err := start(ctx, binary, dir, sample, once)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.stop()) }()
	s := &story{ctx: ctx, binary: binary, sample: sample, nodes: dev.nodes}
	for _, step := range []func() error{
		s.apply, s.tour, s.accepted, s.refused, s.misspelt, s.replaced, s.queried, s.materialized,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	if once {
		s.chapter("The story ends here (ONCE)")
		return nil
	}
	s.next()
	select {
	case <-ctx.Done():
		return nil
	case err := <-dev.exited:
		return fmt.Errorf("dev ended by itself: %w", err)
	}
}

// process is the running `viewkeeper dev`.
type process struct {
	cmd    *exec.Cmd
	exited chan error
	nodes  []string // base URLs
}

// start runs dev and waits for the dev.json that it writes when it is ready.
func start(ctx context.Context, binary, dir, sample string, once bool) (*process, error) {
	marker := filepath.Join(dir, "dev.json")
	if err := os.Remove(marker); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	args := []string{"dev", "--dir", dir, "--nodes", "2",
		"--base", filepath.Join(sample, "base.sql"), "--lake", filepath.Join(sample, "lake")}
	if once {
		args = append(args, "--http", "127.0.0.1:0", "--kafka", "127.0.0.1:0")
	}
	fmt.Println("$", binary, strings.Join(args, " "))
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// A process group of its own: Ctrl-C reaches this program, which then stops dev.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, exited: make(chan error, 1)}
	go func() { p.exited <- cmd.Wait() }()

	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(2 * time.Minute)
	for {
		select {
		case err := <-p.exited:
			return nil, fmt.Errorf("dev ended before it was ready: %v", err)
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), p.stop())
		case <-deadline:
			return nil, errors.Join(errors.New("dev was not ready within two minutes"), p.stop())
		case <-tick.C:
		}
		text, err := os.ReadFile(marker)
		if err != nil {
			continue
		}
		var found struct {
			Nodes []struct {
				HTTP string `json:"http"`
			} `json:"nodes"`
		}
		if json.Unmarshal(text, &found) != nil || len(found.Nodes) != 2 {
			continue
		}
		for _, n := range found.Nodes {
			p.nodes = append(p.nodes, "http://"+n.HTTP)
		}
		return p, nil
	}
}

func (p *process) stop() error {
	if err := p.cmd.Process.Signal(os.Interrupt); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	select {
	case err := <-p.exited:
		return err
	case <-time.After(30 * time.Second):
		return errors.Join(errors.New("dev did not stop within 30 s of an interrupt"), p.cmd.Process.Kill())
	}
}

// story holds what the steps share.
type story struct {
	ctx            context.Context
	binary, sample string
	nodes          []string
}

func (s *story) chapter(format string, args ...any) {
	fmt.Printf("\n── "+format+"\n", args...)
}

// apply gives every file of definitions to the command line, as a person would.
func (s *story) apply() error {
	s.chapter("The definitions, from files, by the command line")
	files, err := filepath.Glob(filepath.Join(s.sample, "definitions", "*.sql"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no definitions in %s: %v", s.sample, err)
	}
	for _, f := range files {
		fmt.Println("$ viewkeeper sql -f", f)
		cmd := exec.CommandContext(s.ctx, s.binary, "sql", "--server", s.nodes[0], "--output", "table", "-f", f)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", f, err)
		}
	}
	return nil
}

// tour shows what is there, asked of the node that was not written to.
func (s *story) tour() error {
	s.chapter("What is there now, asked of the other node")
	var page struct {
		Definitions []struct {
			Name   string `json:"name"`
			Kind   string `json:"kind"`
			State  string `json:"state"`
			ReadBy []string
			Reads  []struct{ Name, Kind string }
		} `json:"definitions"`
	}
	if err := s.get(1, "/v1/definitions?limit=1000", &page); err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 2, 8, 2, ' ', 0)
	fmt.Fprintln(w, "definition\tkind\tstate\treads")
	for _, d := range page.Definitions {
		var reads []string
		for _, r := range d.Reads {
			reads = append(reads, r.Name)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", d.Name, d.Kind, d.State, strings.Join(reads, ", "))
		if d.State != "ok" {
			return fmt.Errorf("%s is %s", d.Name, d.State)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(page.Definitions) < 12 {
		return fmt.Errorf("%d definitions on the other node; 12 or more were applied", len(page.Definitions))
	}
	return nil
}

func (s *story) accepted() error {
	s.chapter("Accepted: a view that nobody reads yet")
	d, err := s.issue(0, `CREATE OR REPLACE VIEW report.cancelled AS SELECT day, carrier, cancellations FROM daily WHERE cancellations > 0`)
	if err != nil {
		return err
	}
	if d.Verdict == viewkeeper.Refused {
		return fmt.Errorf("refused: %s", d.Message)
	}
	return nil
}

func (s *story) refused() error {
	s.chapter("Refused: renaming a column that others read")
	d, err := s.issue(0, `CREATE OR REPLACE VIEW departures AS
  SELECT make_date(year, month, day) AS day, time_hour AS scheduled_hour, carrier, flight AS flight_number, tailnum, origin, dest,
         distance AS miles, dep_delay AS delay_minutes, arr_delay AS arrival_delay, dep_time IS NULL AS cancelled
  FROM flights`)
	if err != nil {
		return err
	}
	if d.Verdict != viewkeeper.Refused || d.Code != viewkeeper.CodeBreaksDependents {
		return fmt.Errorf("verdict %s %s, expected a refusal with BREAKS_DEPENDENTS", d.Verdict, d.Code)
	}
	daily := viewkeeper.MakeName("report", "daily")
	worst := viewkeeper.MakeName("report", "worst_carriers")
	isRoot := func(b viewkeeper.Broken) bool { return b.Name == daily && b.RootCause == nil && b.Position != nil }
	isCollateral := func(b viewkeeper.Broken) bool { return b.Name == worst && b.RootCause != nil && *b.RootCause == daily }
	if !slices.ContainsFunc(d.Broken, isRoot) || !slices.ContainsFunc(d.Broken, isCollateral) {
		return fmt.Errorf("expected %s as a root cause with its place and %s as collateral: %+v", daily, worst, d.Broken)
	}
	fmt.Println("  Nothing was changed: every node still serves the definitions that it had.")
	return nil
}

func (s *story) misspelt() error {
	s.chapter("Refused: a misspelt column, with its place")
	d, err := s.issue(1, `CREATE VIEW report.typo AS SELECT carrier, dely FROM main.departures`)
	if err != nil {
		return err
	}
	if d.Verdict != viewkeeper.Refused || d.Code != viewkeeper.CodeBind || d.Position == nil {
		return fmt.Errorf("verdict %s %s at %v, expected a refusal with BIND and a position", d.Verdict, d.Code, d.Position)
	}
	return nil
}

// replaced changes a definition on the first node and asks the second one for it.
func (s *story) replaced() error {
	s.chapter("A replace on one node, seen by the other")
	for _, limit := range []int{3, 4, 5} {
		begin := time.Now()
		d, err := s.statement(0, fmt.Sprintf(`CREATE OR REPLACE VIEW report.worst_carriers AS
  SELECT carrier_name, mean_delay, percent_over_an_hour_late FROM by_carrier
  WHERE departures >= 1000 ORDER BY percent_over_an_hour_late DESC LIMIT %d`, limit), "decided")
		if err != nil {
			return err
		}
		if d.Verdict == viewkeeper.Refused {
			return fmt.Errorf("refused: %s", d.Message)
		}
		var result table
		if err := s.post(1, "/v1/query", map[string]any{
			"sql": "SELECT sql FROM vk.definitions WHERE name = 'report.worst_carriers'", "min_version": d.Version,
		}, &result); err != nil {
			return err
		}
		elapsed := time.Since(begin)
		if len(result.Rows) != 1 || !strings.Contains(fmt.Sprint(result.Rows[0][0]), fmt.Sprintf("LIMIT %d", limit)) {
			return fmt.Errorf("the other node at version %d has %v", d.Version, result.Rows)
		}
		fmt.Printf("  LIMIT %d: version %d, issued on %s, read back on %s after %.1f ms\n", limit, d.Version, s.nodes[0], s.nodes[1], ms(elapsed))
	}
	return nil
}

// queried reads through four levels on both nodes: the answers must be the same.
func (s *story) queried() error {
	s.chapter("A query through four levels: worst_carriers ← by_carrier ← daily ← departures ← the lake")
	var results [2]table
	for i := range results {
		begin := time.Now()
		if err := s.post(i, "/v1/query", map[string]any{"sql": "SELECT * FROM report.worst_carriers"}, &results[i]); err != nil {
			return err
		}
		fmt.Printf("  %s answered %d rows in %.0f ms\n", s.nodes[i], len(results[i].Rows), ms(time.Since(begin)))
	}
	results[0].print()
	if len(results[0].Rows) != 5 || !reflect.DeepEqual(results[0], results[1]) {
		return fmt.Errorf("the nodes differ: %v and %v", results[0], results[1])
	}
	return nil
}

func (s *story) materialized() error {
	s.chapter("A materialized definition: known with its columns, its partitions are yet to be kept")
	var d struct {
		Kind    string              `json:"kind"`
		Columns []viewkeeper.Column `json:"columns"`
	}
	if err := s.get(1, "/v1/definitions/"+url.PathEscape("main.flights_by_day"), &d); err != nil {
		return err
	}
	if d.Kind != string(viewkeeper.KindMaterialized) || len(d.Columns) != 5 {
		return fmt.Errorf("flights_by_day is %+v", d)
	}
	for _, c := range d.Columns {
		fmt.Printf("  %s %s\n", c.Name, c.Type)
	}
	return nil
}

func (s *story) next() {
	s.chapter("It stays up. What to try next, in another terminal (Ctrl-C here stops it)")
	server := strings.TrimPrefix(s.nodes[0], "http://")
	fmt.Printf(`
  %[1]s sql --server http://%[2]s                 a prompt: \d, \d report.daily, SELECT * FROM report.routes LIMIT 5;
  %[1]s sql --server http://%[2]s -c "DROP VIEW departures"          refused: see who reads it
  %[1]s sql --server http://%[2]s -c "ALTER VIEW departures RENAME TO flights_out"   its readers are rewritten
  %[1]s history departures --server http://%[2]s
  %[1]s check --server http://%[2]s -c "CREATE OR REPLACE VIEW fleet AS SELECT tailnum FROM planes"
  curl -s %[3]s/v1/nodes
`, s.binary, server, s.nodes[1])
}

// issue submits a statement, waits until the node has it, and prints the answer.
func (s *story) issue(node int, sql string) (viewkeeper.Decision, error) {
	fmt.Println("  " + strings.ReplaceAll(sql, "\n", "\n  "))
	d, err := s.statement(node, sql, "node")
	if err != nil {
		return d, err
	}
	fmt.Printf("  → %s %s %s\n", d.Verdict, d.Code, d.Message)
	if d.Position != nil {
		fmt.Printf("    at line %d, column %d\n", d.Position.Line, d.Position.Column)
	}
	for _, b := range d.Broken {
		if b.RootCause == nil {
			fmt.Printf("    %s: %s\n", b.Name, b.Reason)
		} else {
			fmt.Printf("    %s, because of %s\n", b.Name, b.RootCause)
		}
	}
	return d, nil
}

func (s *story) statement(node int, sql, wait string) (viewkeeper.Decision, error) {
	var d viewkeeper.Decision
	err := s.post(node, "/v1/statements?wait="+wait, map[string]any{"sql": sql, "reason": "the story"}, &d)
	return d, err
}

func (s *story) get(node int, path string, into any) error {
	return s.do(http.MethodGet, node, path, nil, into)
}

func (s *story) post(node int, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return s.do(http.MethodPost, node, path, text, into)
}

func (s *story) do(method string, node int, path string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(s.ctx, method, s.nodes[node]+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	// A refusal is an answer: 422 with the decision.
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusUnprocessableEntity {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	return json.Unmarshal(text, into)
}

// table is the JSON answer of a query.
type table struct {
	Columns []viewkeeper.Column `json:"columns"`
	Rows    [][]any             `json:"rows"`
}

func (t table) print() {
	w := tabwriter.NewWriter(os.Stdout, 2, 8, 2, ' ', 0)
	for _, c := range t.Columns {
		fmt.Fprintf(w, "  %s\t", c.Name)
	}
	fmt.Fprintln(w)
	for _, r := range t.Rows {
		for _, v := range r {
			fmt.Fprintf(w, "  %v\t", v)
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
