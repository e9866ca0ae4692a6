// Package view is a node's follower of a catalog: goka's View on the group table,
// the factory that is built from it, readiness, history and the other nodes.
//
// # The path of a record
//
//	goka's View ─► record ─► fold ─► pending rows ─► builder ─► registry ─► waiters
//	 (follow.go)   (session.go)       (build.go)                 (swap)      (signal.go)
//
// Records are only collected until the end of the table that was asked for has
// been reached; then all rows are built once. Afterwards each commit row gives the
// builder the rows that it changed; what arrives while it builds is built together.
// So [Node.Current] is the base alone or a whole catalog, never a part of one.
//
// # Non-obvious
//
//   - A decision is known when its commit row is read, before anything is built from
//     it: whoever waits for a decision does not wait for the builder.
//   - goka's View runs once. [Node.Run] makes a new one when one ends; fold, offsets
//     and factory stay. Only another topic under the table's name makes a new fold,
//     and what it holds is taken over only when it is not behind what is served.
//   - A table without a fence has never had an owner, or was emptied. Nobody can tell
//     which, so a node is not ready over it, rather than ready and empty.
//   - A table's first record is a fence, which is never overwritten. A table that
//     begins later had its beginning deleted: compaction can't have done that.
//   - Ready is sticky: once ready, a lost broker makes the node degraded with the age
//     of what it serves, and unready only when that is older than MaxStale.
//   - A copy of the table on disk is only ever of a session that is served, at an
//     offset at which it could be shown (copy.go). What the node goes on from it is
//     followed like what a running node had read: a topic that is another one, a lost
//     end and a lost beginning are noticed against it.
//   - A session from a copy knows its topic before any broker was asked. The cluster is
//     compared before the end that it is given is believed: of two clusters with one
//     history (a copied disk) both have the topic's id.
//   - A factory of everything is not built while the table is being read, also not when
//     a build that failed is done again: in between a gap may have come.
//   - Nothing here is said in the log where it fails. It becomes a reason (health.go,
//     parts.go), which keepTime says when it comes and when it has gone.
//   - The age of other nodes' records is told by the broker's clock alone (fleet.go).
package view
