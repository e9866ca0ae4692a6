package duckdb_test

import (
	"context"
	"fmt"
	"log"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// A server holds the base and the definitions that are applied to it, and answers
// queries as an Arrow stream.
func ExampleServer() {
	ctx := context.Background()
	server, err := duckdb.OpenServer(ctx, duckdb.Options{
		BaseSQL: "CREATE TABLE flights (carrier VARCHAR, delay INTEGER); INSERT INTO flights VALUES ('AA', 5), ('AA', 7), ('UA', -2)",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	err = server.Apply(ctx, 42, false, []registry.Apply{{
		Name:  viewkeeper.MakeName("ops", "late"),
		Query: "SELECT carrier, count(*) AS n FROM main.flights WHERE delay > 0 GROUP BY carrier",
	}})
	if err != nil {
		log.Fatal(err)
	}

	result, err := server.Query(ctx, duckdb.QueryRequest{SQL: "FROM ops.late"})
	if err != nil {
		log.Fatal(err)
	}
	defer result.Body.Close()
	fmt.Println(result.Version, result.Columns)
	rows, err := ipc.NewReader(result.Body)
	if err != nil {
		log.Fatal(err)
	}
	defer rows.Release()
	for rows.Next() {
		fmt.Println(rows.RecordBatch().Column(0), rows.RecordBatch().Column(1))
	}
	if err := rows.Err(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 42 [{carrier VARCHAR} {n BIGINT}]
	// ["AA"] [2]
}
