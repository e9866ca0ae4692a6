package codec_test

import (
	"fmt"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// A record of the table, to bytes and back. Any bytes give a record.
func ExampleDecodeRecord() {
	name := viewkeeper.MakeName("report", "daily")
	key, value := codec.EncodeRecord(codec.Row{Row: viewkeeper.Row{
		Name: name, Version: 7, Epoch: 3,
		Definition: &viewkeeper.Definition{Name: name, Kind: viewkeeper.KindView, SQL: "CREATE VIEW report.daily AS SELECT 1 AS one", ID: 7},
	}})
	fmt.Println(key)

	row := codec.DecodeRecord(key, value).(codec.Row)
	fmt.Println(row.Version, row.Definition.SQL)

	fmt.Printf("%T\n", codec.DecodeRecord(key, []byte("poison")))
	fmt.Printf("%T\n", codec.DecodeRecord(key, nil))
	// Output:
	// report.daily
	// 7 CREATE VIEW report.daily AS SELECT 1 AS one
	// codec.Unknown
	// codec.Tombstone
}

// What a producer wrote, as the judge gets it.
func ExampleDecodeSubmission() {
	s := codec.DecodeSubmission("pJ8w", codec.Message{
		Key: []byte("daily"), Value: []byte("DROP VIEW report.daily"), Offset: 41,
		Headers: []codec.Header{{Key: "author", Value: []byte("jane@example.org")}},
	})
	fmt.Println(s.ID, s.Author, s.SQL)
	// Output: pJ8w:41 jane@example.org DROP VIEW report.daily
}
