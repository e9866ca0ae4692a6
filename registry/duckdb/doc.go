// Package duckdb is the engine on DuckDB: the planner that the registry asks,
// and the side that answers queries. It is the only package that imports DuckDB.
//
// The planner's path of one query goes down these files: lex and gate refuse
// what must not reach the engine's parser or planner, walk reads the engine's own
// syntax tree for references, macros, files and limits, scratch keeps the stubs
// that a query is bound over, and bind asks the engine for its columns.
package duckdb
