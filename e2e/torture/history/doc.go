// Package history is what clients of a catalog, and whoever looks on, saw during a
// run, and the check of it. It knows nothing of Kafka or of processes: a [History]
// goes in, [Finding]s come out, and a history that was kept as a file is checked
// again the same way.
//
// # What is checked, by name of the rule
//
//	lost         what was acked is in the log, and what was told decided is decided
//	not written  a statement of which every answer said "nothing was written" is not in the log
//	undecided    each record of the log has a decision, but for the repetition of a known id
//	twice        one decision for a record and for an id, wherever and whenever it was asked
//	order        versions are offsets + 1; what was answered before another was sent has the lower version
//	law          each decision is the one that a small model of the law gives (model.go)
//	replay       a fleet that met no fault decides the same log the same way, word for word
//	agree        every node's history is that of the decisions topic
//	linear       per name, some order of the statements explains all answers (linear.go, porcupine)
//	broken       no node ever had a definition that did not build
//	digest       one version has one digest, on every node, at any time
//	converged    at the end all nodes, a fresh one too, have the last version and the same definitions
//	stale read   an answer is not of a version below the one asked for, or below what the node had said that it has
//	wrong read   an answer is exactly the catalog of the version that it names
//	backwards    a node's answers never go back; over its restarts too, unless it may start from its own copy
//	exited       no process ended that nobody ended
//
// The order of the log is the witness for most of them: walking it once, a rule is
// decided at each record, in linear time. linear alone does not look at offsets: it
// searches an order that explains what clients saw.
package history
