// Package processor is the owner's side of a catalog: a goka group that judges
// each statement of the definitions topic and commits what becomes of it.
//
// Read it in the order of a statement:
//
//	life.go       one goka processor with our builders, from start to first failure
//	group.go      the session and the claim as goka sees them
//	claim.go      taking over: the checks, the fence, completion, healing
//	owner.go      judging, in goka's callback
//	queue.go      what was judged and is not yet written, bounded in bytes
//	writer.go     the one writer: commit row, then rows, ids and decisions
//	follower.go   the owner's own reader of the table, which says what is finished
//	taken.go      while another process has this one's node id
//
// # Non-obvious
//
//   - goka writes nothing. Its table is only recovered through it, its producer
//     refuses to write, and the offsets that it marks are ignored: one writer of
//     ours does all of it, since a failed table write in goka loses its statement.
//   - The commit row is acked before its rows are sent. Through one producer in one
//     flight they can land without it.
//   - A statement is finished when the owner's own follower has read past its batch
//     without a newer fence. An ack is not enough: the record may lie behind
//     somebody else's fence.
//   - The slot rows of the ring of ids hold committed statements only. An id of a
//     statement that is still pending would, after a crash, make that statement look
//     like its own repetition.
//   - Healing waits until the follower has read all that the owner wrote. Otherwise
//     it would write an older row over a newer one of its own.
//   - A life ends at its first failure, and the supervisor starts another one. There
//     is no way to go on after a write whose outcome is not known.
package processor
