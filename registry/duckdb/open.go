package duckdb

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	bindings "github.com/duckdb/duckdb-go-bindings"
	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Options says what an engine holds and how much it may use.
type Options struct {
	// BaseSQL is the base: CREATE SCHEMA, TYPE, TABLE, VIEW, MACRO and INSERT
	// statements, run once when an engine opens.
	BaseSQL string
	// LakeDirs are the folders that SQL may read files under. A relative path in
	// SQL is taken from the first. Without any, no file can be read.
	LakeDirs []string
	// MemoryLimit is the engine's own memory limit in bytes, 0 for its default (80 %
	// of what the machine has). It is not the process's: see the child process.
	MemoryLimit int64
	// Threads is how many threads a query may use, 0 for one a core.
	Threads int
	// Limits bounds the texts that the gate lets through.
	Limits Limits
	// MakeLater is for whoever gives a server its views again, a few at a time, once it
	// answers: an Apply with reset, or a Restore, of more changes than this notes
	// them, and a view is made when a query names it, or when it is given again without
	// reset. What reads files is made at once. 0 makes all views at once.
	MakeLater int
}

// Limits bounds a query's text. They must be the same on every node, since an
// accepted definition is one that was within them. Zero fields mean the defaults.
type Limits struct {
	// Bytes is the longest text, 512 KiB when 0: above the limit on what is
	// submitted, since a qualified text is longer.
	Bytes int
	// Nesting is the deepest nesting of expressions and subqueries, 100 when 0.
	Nesting int
	// Joins is the most joins in one text, 50 when 0.
	Joins int
	// Layers is the most layers of aggregation, windows and EXISTS on one path of a
	// client's query, registry.DefaultLimits' when 0: the optimizer's time is exponential
	// in them. Those of a definition are the registry's to count, which knows what it
	// reads.
	Layers int
}

// Defaults of Limits.
const (
	DefaultBytes   = 512 << 10
	DefaultNesting = 100
	DefaultJoins   = 50
)

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = DefaultBytes
	}
	if l.Nesting == 0 {
		l.Nesting = DefaultNesting
	}
	if l.Joins == 0 {
		l.Joins = DefaultJoins
	}
	if l.Layers == 0 {
		l.Layers = registry.DefaultLimits.Layers
	}
	return l
}

// instance is one locked DuckDB instance in memory that holds the base.
type instance struct {
	handle bindings.Database
	lake   lake
	base   []baseStatement
	asked  atomic.Int64 // texts and prepared statements that were given to the engine
}

// openInstance opens an instance in memory, locks it down, and runs the base in
// it. The base runs locked like everything after it, so it can reach no more than
// a query can. An error in the base names the statement by its number.
func openInstance(ctx context.Context, opts Options) (*instance, error) {
	lake, err := openLake(opts.LakeDirs)
	if err != nil {
		return nil, err
	}
	base, err := splitBase(opts.BaseSQL)
	if err != nil {
		return nil, err
	}
	i := &instance{lake: lake, base: base}
	var config bindings.Config
	if bindings.CreateConfig(&config) == bindings.StateError {
		return nil, errors.New("duckdb: no configuration")
	}
	defer bindings.DestroyConfig(&config)
	var msg string
	if bindings.OpenExt("", &i.handle, config, &msg) == bindings.StateError {
		return nil, fmt.Errorf("duckdb: open: %s", msg)
	}
	if err := i.prime(ctx, opts); err != nil {
		i.close()
		return nil, err
	}
	return i, nil
}

// close ends the instance. All its connections must be closed before.
func (i *instance) close() { bindings.Close(&i.handle) }

// prime locks the instance down and runs the base.
func (i *instance) prime(ctx context.Context, opts Options) error {
	c, err := i.connect()
	if err != nil {
		return err
	}
	defer c.close()
	for _, set := range lockDown(opts, i.lake) {
		if err := c.exec(ctx, set); err != nil {
			return fmt.Errorf("duckdb: %s: %w", set, err)
		}
	}
	// The gate here only finds the files that the base names: it refuses nothing.
	g, err := newGate(ctx, c, i.lake, Limits{Bytes: math.MaxInt, Nesting: math.MaxInt, Joins: math.MaxInt})
	if err != nil {
		return err
	}
	defer g.serialize.close()
	for n := range i.base {
		if err := i.base[n].run(ctx, g); err != nil {
			return err
		}
	}
	return nil
}

// lockDown gives the settings in the order that they must be made in: what opens
// a way out is closed before anything that could use it, the folders are granted
// before access is cut since they can't be afterwards, and the lock is last.
func lockDown(opts Options, l lake) []string {
	sets := []string{"SET GLOBAL temp_directory = ''"}
	if len(l.dirs) > 0 {
		quoted := make([]string, len(l.dirs))
		for i, d := range l.dirs {
			quoted[i] = quoteLiteral(d)
		}
		sets = append(sets, "SET GLOBAL allowed_directories = ["+strings.Join(quoted, ", ")+"]")
	}
	sets = append(sets,
		"SET GLOBAL enable_external_access = false",
		"SET GLOBAL autoload_known_extensions = false",
		"SET GLOBAL autoinstall_known_extensions = false",
		"SET GLOBAL allow_community_extensions = false",
		"SET GLOBAL allow_persistent_secrets = false",
	)
	if opts.MemoryLimit > 0 {
		sets = append(sets, fmt.Sprintf("SET GLOBAL memory_limit = '%dB'", opts.MemoryLimit))
	}
	if opts.Threads > 0 {
		sets = append(sets, fmt.Sprintf("SET GLOBAL threads = %d", opts.Threads))
	}
	return append(sets,
		// What changes results is said, default or not, so that an engine with other
		// defaults still answers the same.
		"SET GLOBAL TimeZone = 'UTC'",
		"SET GLOBAL Calendar = 'gregorian'",
		"SET GLOBAL default_collation = ''",
		"SET GLOBAL default_order = 'ASC'",
		"SET GLOBAL default_null_order = 'NULLS_LAST'",
		"SET GLOBAL integer_division = false",
		"SET GLOBAL ieee_floating_point_ops = true",
		"SET GLOBAL old_implicit_casting = false",
		"SET GLOBAL scalar_subquery_error_on_multiple_rows = true",
		"SET GLOBAL preserve_identifier_case = true",
		"SET GLOBAL preserve_insertion_order = true",
		"SET GLOBAL binary_as_string = false",
		"SET GLOBAL disable_timestamptz_casts = false",
		"SET GLOBAL order_by_non_integer_literal = false",
		"SET GLOBAL lambda_syntax = 'DEFAULT'",
		"SET GLOBAL max_expression_depth = 1000",
		"SET GLOBAL errors_as_json = true",
		"SET GLOBAL lock_configuration = true",
	)
}

// lake is the folders that SQL may read under.
type lake struct {
	dirs []string // absolute, symbolic links resolved
}

// openLake checks that the folders are there.
func openLake(dirs []string) (lake, error) {
	var l lake
	for _, d := range dirs {
		abs, err := filepath.Abs(d)
		if err == nil {
			abs, err = filepath.EvalSymlinks(abs)
		}
		if err != nil {
			return lake{}, fmt.Errorf("lake folder %s: %w", d, err)
		}
		info, err := os.Stat(abs)
		if err != nil {
			return lake{}, fmt.Errorf("lake folder %s: %w", d, err)
		}
		if !info.IsDir() {
			return lake{}, fmt.Errorf("lake folder %s is not a folder", d)
		}
		l.dirs = append(l.dirs, abs)
	}
	return l, nil
}

// quoteLiteral quotes s as a SQL string literal.
func quoteLiteral(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// reservedSchemas may hold nothing of the base: vk is viewkeeper's own, the
// others are the engine's.
var reservedSchemas = []string{"vk", "information_schema", "pg_catalog", "temp", "system"}

// errorInBase says which statement of the base is at fault.
func errorInBase(n int, text string, format string, args ...any) error {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if len(first) > 60 {
		first = first[:60] + "…"
	}
	return viewkeeper.Errorf(viewkeeper.CodeNotAllowed, "base, statement %d (%s): %s", n, first, fmt.Sprintf(format, args...))
}
