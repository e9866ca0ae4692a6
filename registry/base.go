package registry

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

// Base is what every node has before any DDL: the base's relations and macros,
// the planner that knows them, and the settings that the law depends on. These
// must be the same wherever a decision or a build is to come out the same.
//
// A planner serves one caller at a time and has one scratch catalog. A Base may
// nevertheless be shared by a [Registry], a [Catalog] and any number of builds: it
// serves them one after the other, and makes the scratch catalog each time what
// the next one needs. Between two versions of one catalog that is little work; a
// build from nothing sends all.
type Base struct {
	planner Planner
	engine  *Engine
	options BaseOptions

	relations map[viewkeeper.Name]*Relation
	macros    map[viewkeeper.Name]*Macro

	// mu serialises all use of the planner, and guards what is known of its
	// scratch catalog.
	mu      sync.Mutex
	scratch scratch
}

// BaseOptions are the settings of a Base. The zero value is usable.
type BaseOptions struct {
	// Limits bounds the definitions' complexity; zero fields take DefaultLimits'.
	Limits Limits
	// Sizes bounds what is submitted; zero fields take ddl.DefaultLimits'.
	Sizes ddl.Limits
	// Policy is what materialized definitions must hold beyond the law. Only new
	// statements are held to it, never rows accepted before it was set.
	Policy Policy
	// Log is where a LiveSnapshot build says what it skips; slog.Default when nil.
	Log *slog.Logger
	// LoadFailure, when set, is called by a LiveSnapshot build with the name of
	// each definition that it skips, for view_definition_load_failure{view}.
	LoadFailure func(viewkeeper.Name)
}

// Limits bounds what a definition may be once the definitions that it reads are
// expanded in it. All nodes must have the same.
type Limits struct {
	// Depth is the longest chain of definitions, Leaves the number of things
	// scanned, Layers the number of GROUP BY, window and EXISTS layers on one path.
	Depth, Leaves, Layers int
	// Record is the largest table record in bytes: what one statement makes of
	// the catalog must fit.
	Record int
}

// DefaultLimits are the limits of docs/language.md and DESIGN.md.
var DefaultLimits = Limits{Depth: 100, Leaves: 2000, Layers: 12, Record: 8 << 20}

func (l Limits) orDefault() Limits {
	pick := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	pick(&l.Depth, DefaultLimits.Depth)
	pick(&l.Leaves, DefaultLimits.Leaves)
	pick(&l.Layers, DefaultLimits.Layers)
	pick(&l.Record, DefaultLimits.Record)
	return l
}

// Policy is what an installation demands of its materialized definitions'
// columns. The zero value demands nothing.
type Policy struct {
	// Require lists demands that must all hold.
	Require []RequiredColumn
}

// RequiredColumn demands that one of the named columns is there.
type RequiredColumn struct {
	AnyOf []string
	// Types are the engine's types that the column may have; any when empty.
	Types []string
}

// NewBase asks the planner what the base holds. The planner stays the caller's
// to close. The error is the planner's.
func NewBase(ctx context.Context, planner Planner, options BaseOptions) (*Base, error) {
	engine, err := planner.Describe(ctx)
	if err != nil {
		return nil, fmt.Errorf("describe the base: %w", err)
	}
	options.Limits = options.Limits.orDefault()
	sizes := ddl.DefaultLimits()
	if options.Sizes.MaxBody == 0 {
		options.Sizes.MaxBody = sizes.MaxBody
	}
	if options.Sizes.MaxChangeSet == 0 {
		options.Sizes.MaxChangeSet = sizes.MaxChangeSet
	}
	if options.Log == nil {
		options.Log = slog.Default()
	}
	b := &Base{
		planner:   planner,
		engine:    engine,
		options:   options,
		relations: make(map[viewkeeper.Name]*Relation, len(engine.Relations)),
		macros:    make(map[viewkeeper.Name]*Macro, len(engine.Macros)),
		scratch:   scratch{settled: newGraph(), stale: true},
	}
	for i := range engine.Relations {
		b.relations[engine.Relations[i].Name] = &engine.Relations[i]
	}
	for i := range engine.Macros {
		b.macros[engine.Macros[i].Name] = &engine.Macros[i]
	}
	return b, nil
}

// Engine is what the planner said of itself and of the base. Do not change it.
func (b *Base) Engine() *Engine { return b.engine }

// Limits are the limits in force.
func (b *Base) Limits() Limits { return b.options.Limits }

// Relation gives a base relation by its name.
func (b *Base) Relation(name viewkeeper.Name) (*Relation, bool) {
	r, ok := b.relations[name]
	return r, ok
}

// distrust makes the next trial stub the scratch catalog from nothing.
func (b *Base) distrust() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scratch.stale = true
}
