// Command bench measures what viewkeeper promises of its speed, on real Apache Kafka
// and with the binary as people run it, and prints one table: each figure beside the
// baseline that was measured in the same run, and beside its target.
//
//	make bench                   all of it, 10,000 definitions, below 20 minutes
//	make bench QUICK=1           2,000 definitions and fewer repetitions, below 3 minutes
//	make bench ONLY=P1,P3        some of it
//
// Every figure has a file of its own (p1_visible.go) and a row in figures.go; what
// several of them are compared with is in baseline_*.go. A figure that misses its
// target is shown so and is no failure (-strict makes it one): a machine can be slow.
// One that could not be measured is a failure.
//
// # Non-obvious
//
//   - Processes of viewkeeper are those of bin/viewkeeper. The engine of what runs in
//     this process is a child of it: main begins as cmd/viewkeeper does.
//   - A figure and its baseline take turns (A B A B) wherever that can be, since the
//     machine is not the same from one minute to the next.
package main
