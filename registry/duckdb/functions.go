package duckdb

import (
	"context"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// The allow-list of functions. It is built from what the engine says of each
// (duckdb_functions): stability CONSISTENT means the same answer for the same
// arguments. Where that is not so, or where the engine's word is not all that
// counts, the tables below say otherwise. What the engine does not list it cannot
// bind, so an unknown name passes the gate and is the engine's to refuse.

// standing is what the gate thinks of a function.
type standing uint8

const (
	unlisted standing = iota // the engine has no such function
	allowed
	volatile // allowed, but not in a strict query
	refused
)

// judgement is a function's standing with the reason for what is not allowed: a
// part of a sentence that begins with the function.
type judgement struct {
	standing standing
	reason   string
	// queries says that a client's query may use what a definition may not.
	queries bool
}

const (
	dependsOnTime = "depends on the time"
	givesRandom   = "gives a random value"
	sessionState  = "reads the session's state, which other nodes do not have; write the value itself"
	sideEffect    = "changes something beyond the query; leave it out"
	nodeSetting   = "shows how this node is set up, which is not the catalog's; vk.settings and vk.nodes have what is to be known"
	ownInternals  = "shows or needs the engine's own internals; leave it out"
	nodeLocal     = "shows this node's own catalog or state, which other nodes do not have; leave it out"
	readsText     = "takes a query or a relation as text, which nobody can check; write the query itself"
	readsRaw      = "reads files as they are; definitions may use read_parquet, read_csv and 'file' under the lake folders"
)

func judge(j judgement, names string) map[string]judgement {
	out := map[string]judgement{}
	for _, n := range strings.Fields(names) {
		out[n] = j
	}
	return out
}

// judgements lists them by reason.
func judgements() map[string]judgement {
	all := map[string]judgement{}
	for _, group := range []map[string]judgement{
		judge(judgement{standing: volatile, reason: dependsOnTime}, "now today current_date get_current_time get_current_timestamp "+
			"transaction_timestamp current_localtime current_localtimestamp current_time current_timestamp localtime localtimestamp"),
		// reservoir_quantile keeps a random sample, though it says CONSISTENT.
		judge(judgement{standing: volatile, reason: givesRandom}, "random uuid gen_random_uuid uuidv4 uuidv7 reservoir_quantile"),
		// error is VOLATILE so that it is not folded away. It is the same every time.
		judge(judgement{standing: allowed}, "error unnest unlist grouping grouping_id count_star columns"),
		// These say CONSISTENT, and depend on the node: no client of one is to build on
		// what another one answers otherwise.
		judge(judgement{standing: refused, reason: sessionState}, "getvariable current_setting getenv"),
		judge(judgement{standing: refused, reason: sessionState, queries: true}, "current_schema current_schemas current_database "+
			"current_catalog in_search_path"),
		judge(judgement{standing: refused, reason: sideEffect}, "nextval currval setseed write_log sleep_ms enable_logging disable_logging "+
			"truncate_duckdb_logs enable_profiling disable_profiling checkpoint force_checkpoint enable_peg_parser disable_peg_parser"),
		judge(judgement{standing: refused, reason: nodeLocal, queries: true}, catalogFunctions),
		judge(judgement{standing: refused, reason: nodeLocal, queries: true}, "stats sniff_csv pg_timezone_names icu_calendar_names "+
			"parquet_metadata parquet_schema parquet_file_metadata parquet_kv_metadata parquet_full_metadata parquet_bloom_probe"),
		judge(judgement{standing: refused, reason: nodeLocal}, "version current_query current_query_id current_connection_id current_transaction_id "+
			"txid_current which_secret glob get_block_size"),
		judge(judgement{standing: refused, reason: readsText}, "query query_table json_serialize_sql json_deserialize_sql json_serialize_plan "+
			"json_execute_serialized_sql sql_auto_complete check_peg_parser"),
		judge(judgement{standing: refused, reason: readsRaw}, "read_text read_blob read_json_objects read_json_objects_auto read_ndjson_objects read_duckdb"),
		judge(judgement{standing: refused, reason: ownInternals}, "combine finalize create_sort_key constant_or_null vector_type remap_struct "+
			"replace_type make_type get_type cast_to_type is_histogram_other_bin parse_duckdb_log_message seq_scan arrow_scan "+
			"arrow_scan_dumb summary test_all_types test_vector_types timetz_byte_comparable variant_bytes_to_variant "+
			"variant_to_parquet_variant variant_normalize"),
	} {
		for n, j := range group {
			all[n] = j
		}
	}
	return all
}

// catalogFunctions are the table functions by which a client may look at what there
// is. The engine's others, of its settings, files, memory and logs, are the node's.
const catalogFunctions = "duckdb_columns duckdb_constraints duckdb_dependencies duckdb_functions duckdb_indexes duckdb_keywords " +
	"duckdb_schemas duckdb_sequences duckdb_tables duckdb_types duckdb_views pragma_collations pragma_show pragma_table_info"

// nodeViews are the engine's own views that show the node and not the catalog: to
// read one is to call its function.
var nodeViews = []string{"pg_settings", "pg_prepared_statements", "duckdb_logs"}

// fileReaders are the table functions that read files, which they may under the
// lake folders.
var fileReaders = []string{
	"read_parquet", "parquet_scan", "read_csv", "read_csv_auto", "read_json", "read_json_auto", "read_ndjson", "read_ndjson_auto",
}

// tableFunctions are the other table functions that a definition may use.
var tableFunctions = []string{"range", "generate_series", "unnest", "json_each", "json_tree", "repeat", "repeat_row"}

// functions is the engine's functions as the gate sees them.
type functions struct {
	scalar map[string]judgement // scalar functions, aggregates and window functions
	table  map[string]judgement
	macros map[string][]engineMacro // the engine's own macros
	// aggregates holds the names of aggregates.
	aggregates map[string]bool
}

// engineMacro is one overload of a macro of the engine's own.
type engineMacro struct {
	schema     string
	table      bool
	parameters []string
	text       string
}

// loadFunctions asks the engine for its functions. Macros of the base are not
// among them.
func loadFunctions(ctx context.Context, c *conn) (*functions, error) {
	rows, err := c.query(ctx, `SELECT function_name, function_type, coalesce(stability, ''), schema_name,
		array_to_string(parameters, chr(31)), coalesce(macro_definition, '') FROM duckdb_functions() WHERE database_name = 'system'`)
	if err != nil {
		return nil, err
	}
	f := &functions{scalar: map[string]judgement{}, table: map[string]judgement{}, macros: map[string][]engineMacro{}, aggregates: map[string]bool{}}
	judged := judgements()
	for _, row := range rows {
		name, kind, stability := viewkeeper.Fold(row[0]), row[1], row[2]
		j, known := judged[name]
		switch kind {
		case "macro", "table_macro":
			if known {
				f.scalar[name] = j
				break
			}
			m := engineMacro{schema: row[3], table: kind == "table_macro", text: row[5]}
			if row[4] != "" {
				m.parameters = strings.Split(row[4], "\x1f")
			}
			f.macros[name] = append(f.macros[name], m)
		case "scalar", "aggregate":
			if kind == "aggregate" {
				f.aggregates[name] = true
			}
			switch {
			case known:
			case strings.HasPrefix(name, "__internal"):
				j = judgement{standing: refused, reason: ownInternals}
			case stability == "CONSISTENT":
				j = judgement{standing: allowed}
			default:
				j = judgement{standing: refused, reason: "is not the same at every call; leave it out"}
			}
			if old, twice := f.scalar[name]; !twice || old.standing < j.standing {
				f.scalar[name] = j
			}
		case "table":
			switch {
			case slices.Contains(tableFunctions, name) || slices.Contains(fileReaders, name):
				j = judgement{standing: allowed}
			case known:
			case strings.HasPrefix(name, "duckdb_") || strings.HasPrefix(name, "pragma_"):
				j = judgement{standing: refused, reason: nodeLocal}
			default:
				j = judgement{standing: refused, reason: "is not among the table functions that a definition may use; leave it out"}
			}
			f.table[name] = j
		}
	}
	// What the parser or the binder knows by itself, and the engine's shell.
	for name, j := range judged {
		if _, listed := f.scalar[name]; !listed {
			if _, listed := f.table[name]; !listed || j.standing == allowed {
				f.scalar[name] = j
			}
		}
	}
	return f, nil
}

// specialColumns are the unqualified names that are a function's when no column
// has them. Those that are left out, current_user and its like, are the same
// constant on every node.
var specialColumns = map[string]judgement{
	"current_date":      {standing: volatile, reason: dependsOnTime},
	"current_time":      {standing: volatile, reason: dependsOnTime},
	"current_timestamp": {standing: volatile, reason: dependsOnTime},
	"localtime":         {standing: volatile, reason: dependsOnTime},
	"localtimestamp":    {standing: volatile, reason: dependsOnTime},
	"current_schema":    {standing: refused, reason: sessionState, queries: true},
	"current_catalog":   {standing: refused, reason: sessionState, queries: true},
}
