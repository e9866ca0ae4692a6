// Package duckdb is the engine on DuckDB: the planner that the registry asks,
// and the side that answers queries. It is the only package that imports DuckDB.
//
// The planner's path of one query goes down these files: lex, precheck and gate
// refuse what must not reach the engine's parser or planner; walk and the files
// after it read the engine's own syntax tree for references (cte, places), what is
// called (functions, macros, amplify) and files; remember keeps what the gate found
// until the text is bound; scratch keeps the stubs that a query is bound over, and makes
// those that it reads; and bind asks the engine for its columns (types, nulls, parquet).
// The queries of one call go that way side by side (lanes).
//
// The server's files begin with serve: serve_apply makes the real views,
// serve_gate and serve_query start a query, serve_body streams its rows, which
// serve_types, serve_columns, serve_nested and serve_text turn into Arrow, and
// serve_vk has the tables that viewkeeper tells of itself. The package engine runs
// either side in a child process.
package duckdb
