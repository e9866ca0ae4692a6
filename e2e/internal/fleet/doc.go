// Package fleet runs the binary as people run it: processes of one catalog on
// real Apache Kafka, each with an address and data of its own, that tests start,
// ask, stop, kill and freeze.
//
// $KAFKA_BROKERS says where Kafka is and $KAFKA_DIR, when scripts/kafka started
// it, which brokers there are to kill (scripts/with-kafka sets both). Every Fleet
// has a catalog of its own, so that tests do not meet.
//
// A test reads like this:
//
//	f := fleet.New(t)
//	f.Serve("owner", "owner")
//	n := f.Serve("n1", "node")
//	d := n.Statement("CREATE VIEW v AS SELECT a FROM t")
//	n.WantRows("SELECT count(*) FROM v", d.Version, "2")
//
// What fails ends the test, so these are for the test's own goroutine; Try is the one for others.
package fleet
