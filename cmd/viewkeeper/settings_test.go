package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// settingsTests says of each setting where a test changes it and sees that something
// else happens: a file from the module's root, and what stands in it.
func settingsTests() map[string][2]string {
	const script = "cmd/viewkeeper/testdata/script/"
	return map[string][2]string{
		"config":          {script + "config.txtar", "--config viewkeeper.yaml"},
		"http":            {script + "restart.txtar", "--http 127.0.0.1:0"},
		"advertise":       {script + "settings.txtar", "--advertise n1.example.org:80"},
		"brokers":         {script + "serve.txtar", "--brokers $KAFKA"},
		"catalog":         {script + "serve.txtar", "--catalog other"},
		"roles":           {script + "serve.txtar", "--roles owner"},
		"node-id":         {"e2e/traps/silent_test.go", "--node-id"},
		"data-dir":        {script + "settings.txtar", "exists n1/prod"}, // what `serve` of the scripts gives
		"base":            {script + "first_hour.txtar", "--base base.sql"},
		"lake":            {script + "broken.txtar", "--lake lake"},
		"memory-limit":    {script + "limits.txtar", "--memory-limit 400MB"},
		"threads":         {"registry/duckdb/open_test.go", "Threads: 3"},
		"max-body":        {script + "limits.txtar", "--max-body 100"},
		"max-statement":   {script + "settings.txtar", "--max-statement 150"},
		"max-depth":       {script + "limits.txtar", "--max-depth 2"},
		"max-leaves":      {"e2e/faults/start_test.go", `"--max-leaves", "2"`},
		"max-layers":      {"e2e/faults/start_test.go", `"--max-layers", "1"`},
		"max-nesting":     {"e2e/faults/start_test.go", `"--max-nesting", "10"`},
		"max-joins":       {script + "limits.txtar", "--max-joins 1"},
		"require-column":  {script + "limits.txtar", "--require-column audience|process_id:VARCHAR"},
		"max-stale":       {"e2e/faults/away_test.go", `"--max-stale", "4s"`},
		"start-stale":     {"e2e/copy_test.go", "--start-stale"},
		"purge-after":     {script + "usage.txtar", "--purge-after 1h"},
		"max-queries":     {"server/query_test.go", "c.MaxQueries = 2"},
		"from":            {script + "serve.txtar", "--from table"},
		"force":           {script + "settings.txtar", "restore backup --force --output"},
		"dry-run":         {script + "settings.txtar", "--force --dry-run"},
		"accept-loss":     {script + "serve.txtar", "restore backup --accept-loss"},
		"query-timeout":   {script + "limits.txtar", "--query-timeout 2s"},
		"read-only":       {script + "serve.txtar", "--read-only"},
		"strict-settings": {"e2e/faults/rights_test.go", "--strict-settings"},
		"dir":             {script + "restart.txtar", "dev --dir d"},
		"nodes":           {script + "first_hour.txtar", "--server $NODE2"},
		"kafka":           {script + "settings.txtar", "--brokers $FIRST"},
		"server":          {script + "first_hour.txtar", "--server $NODE2"},
		"output":          {script + "first_hour.txtar", "--output csv"},
		"author":          {script + "settings.txtar", "--author joe"},
		"reason":          {script + "first_hour.txtar", "--reason 'the first report'"},
		"timeout":         {script + "limits.txtar", "--timeout 200ms"},
		"wait":            {script + "first_hour.txtar", "--wait fleet"},
		"command":         {script + "first_hour.txtar", "sql --output table -c "},
		"file":            {script + "first_hour.txtar", "-f levels.sql"},
		"id":              {script + "first_hour.txtar", "--id once"},
		"expect-version":  {script + "first_hour.txtar", "--expect-version 0"},
		"like":            {script + "first_hour.txtar", "--like 'by%'"},
		"kind":            {script + "settings.txtar", "--kind materialized"},
		"since":           {script + "settings.txtar", "--since 1"},
		"limit":           {script + "first_hour.txtar", "--limit 1"},
		"fleet":           {script + "first_hour.txtar", "wait 1 --fleet"},
		"log-level":       {"cmd/viewkeeper/settings_test.go", "func TestLog("},
		"log-format":      {"cmd/viewkeeper/settings_test.go", "func TestLog("},
	}
}

// TestEverySettingIsTested: each setting that there is has a test that changes it, so
// that none is wired to nothing. Who adds a setting adds its test here.
func TestEverySettingIsTested(t *testing.T) {
	var a app
	a.use(pflag.NewFlagSet("test", pflag.ContinueOnError))
	tests := settingsTests()
	a.all.VisitAll(func(f *pflag.Flag) {
		test, ok := tests[f.Name]
		delete(tests, f.Name)
		if !ok {
			t.Errorf("no test changes --%s; write one, and name it in settingsTests", f.Name)
			return
		}
		text, err := os.ReadFile(filepath.Join("..", "..", test[0]))
		if err != nil || !strings.Contains(string(text), test[1]) {
			t.Errorf("the test of --%s is not in %s any more (%q): %v", f.Name, test[0], test[1], err)
		}
	})
	for name := range tests {
		t.Errorf("there is no setting %s", name)
	}
}

// TestLog: --log-format and --log-level.
func TestLog(t *testing.T) {
	log := func(format, level string) string {
		f, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		a := app{Settings: Settings{LogFormat: format, LogLevel: level}}
		l := a.loggerTo(f)
		for _, at := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
			l.Log(t.Context(), at, at.String(), "n", 1)
		}
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := log("text", "info"); strings.Contains(got, "DEBUG") || !strings.Contains(got, "level=INFO msg=INFO n=1") {
		t.Error(got)
	}
	if got := log("text", "debug"); !strings.Contains(got, "msg=DEBUG") {
		t.Error(got)
	}
	var line struct {
		Level string
		N     int
	}
	if got := log("json", "warn"); json.Unmarshal([]byte(got), &line) != nil || line.Level != "WARN" || line.N != 1 {
		t.Error(got)
	}
}

// TestThreads: --threads reaches the engine; what it does there is held by its own test.
func TestThreads(t *testing.T) {
	a := app{Settings: Settings{Threads: 3, MemoryLimit: "1GB"}}
	if cfg, err := a.engineConfig(slog.New(slog.DiscardHandler)); err != nil || cfg.Options.Threads != 3 {
		t.Errorf("%+v, %v", cfg.Options, err)
	}
}
