// Package tablecopy is a node's own copy of the table, on disk: what a start goes on
// from, and what a node serves that starts while Kafka is away. It is also one of the
// things that a lost table can be put back from, see [Read].
//
// A copy is the table as it was read up to one offset. What it holds of it is chosen
// by [Selection]: for every key its last record and its last record that counted, and
// every fence. Given to a fold in the order of their offsets, they make the fold that
// read the table up to there (internal/fold, "A copy of the table").
//
// # Whole or not at all
//
// A copy says which topic of which cluster it is of. All that changes between two
// offsets is written in one batch with the offset that it leads to, so that a crash
// loses the last batches and never a part of one. Each record carries a checksum, and
// the meta record the number and the sum of the checksums of all: a record that was
// changed, lost, or came back is noticed when the copy is opened, whatever became of
// the files. What does not add up is an [UnusableError], and is thrown away: a copy is
// never repaired, since the topic has it all.
//
// FORMAT.md beside this file has the bytes.
package tablecopy
