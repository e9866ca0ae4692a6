// Package broker is the embedded Kafka broker of `viewkeeper dev` and of tests:
// franz-go's kfake with its data in a directory.
//
// Every produce is synced to disk before it is acked, and all of it is there again
// after kill -9. It is one broker without replication, on one goroutine: for a
// laptop and for tests, not for data that somebody will miss.
//
// # Where it differs from Apache Kafka
//
//   - Compaction ignores min.compaction.lag.ms and looks at everything but the last
//     batch. So it runs rarely (every 6 hours), where a late row of a former owner
//     has long been healed.
//   - When compaction takes the first record, the topic's beginning moves. A table's
//     first record is a fence, which nobody overwrites, so that there a beginning
//     that moved means a truncated prefix here as well.
//   - Settings that it does not know are kept and shown, not obeyed.
package broker
