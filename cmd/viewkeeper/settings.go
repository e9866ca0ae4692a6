package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// Settings are the values of all settings, of every command. Each is declared
// once, in define: its flag's name gives the environment variable and the key of
// the configuration file too.
type Settings struct {
	all     *pflag.FlagSet
	sources map[string]string // where a value came from, when not the default

	// Where a process stands.
	HTTP      string
	Advertise string
	Brokers   []string
	Catalog   string
	Roles     []string
	NodeID    string
	DataDir   string

	// What every node has, and how much an engine may use.
	Base        string
	Lake        []string
	MemoryLimit string
	Threads     int

	// What a definition may be. The same on every process of a catalog.
	MaxBody      int
	MaxStatement int
	MaxDepth     int
	MaxLeaves    int
	MaxLayers    int
	MaxNesting   int
	MaxJoins     int
	// RequireColumn holds demands on materialized definitions, see policy.
	RequireColumn []string

	// How a node behaves.
	MaxStale     time.Duration
	StartStale   bool
	QueryTimeout time.Duration
	MaxQueries   int
	ReadOnly     bool
	PurgeAfter   time.Duration
	// StrictSettings is about topics whose settings can't be read.
	StrictSettings bool

	// dev.
	Dir   string
	Nodes int
	Kafka string

	// Clients.
	Server  string
	Output  string
	Author  string
	Reason  string
	Timeout time.Duration
	Wait    string

	// One request.
	Command       string
	File          string
	ID            string
	ExpectVersion string
	Like          string
	Kind          string
	Since         uint64
	Limit         int
	Fleet         bool

	// restore.
	From       string
	Force      bool
	AcceptLoss bool
	DryRun     bool

	LogLevel  string
	LogFormat string

	// Config is the file's path. It can't stand in the file.
	Config string
}

// define declares every setting: name, default and what it means.
func (s *Settings) define(f *pflag.FlagSet) {
	f.StringVar(&s.Config, "config", "", "YAML `file` with settings, a key for each flag")

	f.StringVar(&s.HTTP, "http", "127.0.0.1:7410", "`address` that a node answers HTTP at; port 0 takes a free one, further nodes of dev count up from it")
	f.StringVar(&s.Advertise, "advertise", "", "`address` that clients reach this node's HTTP at, as other nodes are told (default: the one it listens at)")
	f.StringSliceVar(&s.Brokers, "brokers", nil, "Kafka `brokers`, host:port, separated by commas")
	f.StringVar(&s.Catalog, "catalog", "", "`name` of the catalog, [a-z][a-z0-9-]{0,62}")
	f.StringSliceVar(&s.Roles, "roles", []string{"owner", "node"}, "what this process is: `owner` (may judge statements), node (follows and answers), or both")
	f.StringVar(&s.NodeID, "node-id", "", "`id` of this node, unique in the fleet and the same after a restart (default: host and port)")
	f.StringVar(&s.DataDir, "data-dir", "viewkeeper-data", "`directory` of this node's own copy and history; it may be deleted while the node is down")

	f.StringVar(&s.Base, "base", "", "SQL `file` with what every node has before any DDL: schemas, types, tables, views, macros, inserts into its own tables")
	f.StringArrayVar(&s.Lake, "lake", nil, "`directory` that definitions, queries and the base may read files from, relative paths from the first; may be repeated")
	f.StringVar(&s.MemoryLimit, "memory-limit", "4GB", "`size` of memory that the engine which answers queries may use before it is stopped, as 500MB or 2GB")
	f.IntVar(&s.Threads, "threads", 0, "`number` of threads that one engine may use (default: one a core)")

	f.IntVar(&s.MaxBody, "max-body", ddl.DefaultLimits().MaxBody, "largest query of a definition, in `bytes`; this and the max- limits below must be the same on every process of a catalog")
	f.IntVar(&s.MaxStatement, "max-statement", ddl.DefaultLimits().MaxChangeSet, "largest statement or change set, in `bytes`")
	f.IntVar(&s.MaxDepth, "max-depth", registry.DefaultLimits.Depth, "longest `chain` of definitions that read one another")
	f.IntVar(&s.MaxLeaves, "max-leaves", registry.DefaultLimits.Leaves, "largest `number` of relations that a definition scans, those that it reads expanded")
	f.IntVar(&s.MaxLayers, "max-layers", registry.DefaultLimits.Layers, "largest `number` of GROUP BY, window and EXISTS layers on one path, the definitions that it reads expanded")
	f.IntVar(&s.MaxNesting, "max-nesting", duckdb.DefaultNesting, "deepest `nesting` of expressions and subqueries in one text; this and max-joins protect the engine, and what was accepted with higher ones is broken here")
	f.IntVar(&s.MaxJoins, "max-joins", duckdb.DefaultJoins, "largest `number` of joins in one text")
	f.StringArrayVar(&s.RequireColumn, "require-column", nil, "`demand` on new materialized definitions, as 'audience|process_id:VARCHAR': one of these columns, of one of these types; may be repeated")

	f.DurationVar(&s.MaxStale, "max-stale", 5*time.Minute, "`age` of what a node serves, without connection to Kafka, from which on it is not ready")
	f.BoolVar(&s.StartStale, "start-stale", true, "when Kafka is away at the start, serve what this node's own copy of the table holds, marked with its age; false waits for Kafka")
	f.DurationVar(&s.QueryTimeout, "query-timeout", 5*time.Minute, "`time` after which a query is ended")
	f.IntVar(&s.MaxQueries, "max-queries", 64, "`number` of queries that a node runs at one time; eight times as many wait for their turn")
	f.BoolVar(&s.ReadOnly, "read-only", false, "write nothing to Kafka: statements are answered with 403, and other nodes do not see this one")
	f.DurationVar(&s.PurgeAfter, "purge-after", 168*time.Hour, "`age` of a drop from which on the owner takes its row out of the table; a node that was away for longer reads the whole table again; at least 24h")
	f.BoolVar(&s.StrictSettings, "strict-settings", false, "do not work over topics whose settings this process may not read (DescribeConfigs), instead of saying so and trusting them")

	f.StringVar(&s.Dir, "dir", "viewkeeper-dev", "`directory` of everything that dev keeps; the same one continues where it stopped")
	f.IntVar(&s.Nodes, "nodes", 2, "`number` of nodes")
	f.StringVar(&s.Kafka, "kafka", "127.0.0.1:0", "`address` of the embedded broker; port 0 takes a free one at the first start and the same one afterwards")

	f.StringVar(&s.Server, "server", "http://127.0.0.1:7410", "`URL` of the node to ask")
	f.StringVarP(&s.Output, "output", "o", "", "`form` of the answer: table, json, and for query results csv (default: table on a terminal, else json)")
	f.StringVar(&s.Author, "author", defaultAuthor(), "`who` submits a statement, shown with its decision")
	f.StringVar(&s.Reason, "reason", "", "`why` a statement is submitted, shown with its decision")
	f.DurationVar(&s.Timeout, "timeout", 30*time.Second, "`time` to wait for an answer; a query has the node's --query-timeout unless this is given")
	f.StringVar(&s.Wait, "wait", "node", "until when a statement waits: `decided`, node (the node asked has it; with --brokers the same as decided) or fleet (every live node has it)")

	f.StringVarP(&s.Command, "command", "c", "", "SQL `text` to run")
	f.StringVarP(&s.File, "file", "f", "", "`file` with SQL to run; - is the standard input")
	f.StringVar(&s.ID, "id", "", "statement `id`; the same one with the same text is decided once (default: a random one)")
	f.StringVar(&s.ExpectVersion, "expect-version", "", "`version` that the definition must have, 0 that it must not exist, else the statement is refused")
	f.StringVar(&s.Like, "like", "", "only names that match a LIKE `pattern`, as 'daily%'")
	f.StringVar(&s.Kind, "kind", "", "only definitions of a `kind`: view or materialized")
	f.Uint64Var(&s.Since, "since", 0, "only what came after this catalog `version`")
	f.IntVar(&s.Limit, "limit", 0, "at most this `number`, the newest (default: all)")
	f.BoolVar(&s.Fleet, "fleet", false, "wait for every live node and not only for the one asked")

	f.StringVar(&s.From, "from", "", "`source` of a restore: export, copy, decisions or table (default: what the directory holds)")
	f.BoolVar(&s.Force, "force", false, "write over a table that is well; only on the command line")
	f.BoolVar(&s.AcceptLoss, "accept-loss", false, "put back a catalog of which something is missing; only on the command line")
	f.BoolVar(&s.DryRun, "dry-run", false, "say what a restore would do, and write nothing")

	f.StringVar(&s.LogLevel, "log-level", "info", "least `level` that is logged: debug, info, warn, error")
	f.StringVar(&s.LogFormat, "log-format", "text", "`form` of the log: text or json")
}

// roleSettings are the settings of a process with roles, dev's among them.
func roleSettings() []string {
	return []string{
		"base", "lake", "http", "catalog", "memory-limit", "threads", "max-stale", "query-timeout", "max-queries", "log-level", "log-format",
		"max-body", "max-statement", "max-depth", "max-leaves", "max-layers", "max-nesting", "max-joins", "require-column",
	}
}

// sizes and limits are what the settings say that a definition may be.
func (s *Settings) sizes() ddl.Limits {
	return ddl.Limits{MaxBody: s.MaxBody, MaxChangeSet: s.MaxStatement}
}

func (s *Settings) limits() registry.Limits {
	return registry.Limits{Depth: s.MaxDepth, Leaves: s.MaxLeaves, Layers: s.MaxLayers}
}

// policy reads the demands of --require-column.
func (s *Settings) policy() (p registry.Policy, err error) {
	for _, demand := range s.RequireColumn {
		names, types, typed := strings.Cut(demand, ":")
		column := registry.RequiredColumn{AnyOf: strings.Split(names, "|")}
		if typed {
			column.Types = strings.Split(types, "|")
		}
		if slices.Contains(column.AnyOf, "") || slices.Contains(column.Types, "") {
			return p, fmt.Errorf("%q is not a demand; write it as 'audience|process_id:VARCHAR'", demand)
		}
		p.Require = append(p.Require, column)
	}
	return p, nil
}

// use gives a command the flags of the named settings.
func (s *Settings) use(flags *pflag.FlagSet, names ...string) {
	if s.all == nil {
		s.all = pflag.NewFlagSet("settings", pflag.ContinueOnError)
		s.sources = map[string]string{}
		s.define(s.all)
	}
	for _, name := range names {
		f := s.all.Lookup(name)
		if f == nil {
			panic("no setting " + name)
		}
		flags.AddFlag(f)
	}
}
