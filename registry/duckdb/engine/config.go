package engine

import (
	"log/slog"
	"time"

	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// Config is how an engine's child is run. Zero fields mean the defaults.
type Config struct {
	// Options are the engine's own. When its MemoryLimit is 0, three quarters of the
	// resident limit below are taken: the engine then refuses a query that wants too
	// much before the watchdog kills it and every other query with it.
	Options duckdb.Options

	// ResidentLimit is the resident size in bytes over which the child is killed:
	// 1 GiB by default for a planner, 4 GiB for a server. memory_limit alone is no
	// limit: constant folding and much else does not ask it. On other systems than
	// Linux nothing watches.
	ResidentLimit int64

	// CallTimeout bounds each call of a planner, and each Apply, whose context has
	// no deadline: 10 s by default, 2 min for Apply. At the deadline, this or the
	// context's, the child is killed, since much of the engine does not listen to
	// interrupts. The wait for an engine that is being started does not count.
	CallTimeout time.Duration

	// Grace is how long a call that was cancelled, or a query past its timeout, may
	// take to end before the child is killed: 2 s by default.
	Grace time.Duration

	// StartTimeout bounds the start of a child, its base and what it is given to
	// replay included: 2 min by default.
	StartTimeout time.Duration

	// Log takes what happens to the child and what it writes to its standard error;
	// slog.Default() when nil.
	Log *slog.Logger

	// Changed, when set, is told of each loss of the child with how it came about,
	// and with "" when another one is ready. Calls come one at a time, and must not
	// wait for the engine.
	Changed func(loss string)

	// Refused, when set, is called when a server's new child refuses definitions that
	// the one before had, since a file has vanished: whoever knows what was applied
	// applies it again, and learns which. It must not wait for the engine.
	Refused func()

	faults bool           // let a child fail when it is told to
	ended  func(*process) // for tests: told of each child that is gone
}

// The defaults of Config.
const (
	DefaultPlannerResident = 1 << 30
	DefaultServerResident  = 4 << 30
	DefaultCallTimeout     = 10 * time.Second
	DefaultApplyTimeout    = 2 * time.Minute
	DefaultGrace           = 2 * time.Second
	DefaultStartTimeout    = 2 * time.Minute
)

func (c Config) withDefaults(r role) Config {
	if c.ResidentLimit == 0 {
		c.ResidentLimit = DefaultPlannerResident
		if r == roleServer {
			c.ResidentLimit = DefaultServerResident
		}
	}
	if c.Options.MemoryLimit == 0 {
		c.Options.MemoryLimit = c.ResidentLimit / 4 * 3
	}
	if c.CallTimeout == 0 {
		c.CallTimeout = DefaultCallTimeout
		if r == roleServer {
			c.CallTimeout = DefaultApplyTimeout
		}
	}
	if c.Grace == 0 {
		c.Grace = DefaultGrace
	}
	if c.StartTimeout == 0 {
		c.StartTimeout = DefaultStartTimeout
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	c.Log = c.Log.With("engine", string(r))
	if c.Changed == nil {
		c.Changed = func(string) {}
	}
	if c.Refused == nil {
		c.Refused = func() {}
	}
	if c.ended == nil {
		c.ended = func(*process) {}
	}
	return c
}
