// Package fold is what a follower knows after it has read the table up to some
// offset. It is the one place where the rules of "One owner, by the log"
// (DESIGN.md) are written as code; the owner, every node and the model checker run
// the same. It does no I/O and knows no clock: records go in by [Fold.Add], in the
// order of the log, and answers come out.
//
// # The rules, and where they are
//
//  1. Fence. A fence's epoch is its epoch base + its offset + 1 (addFence). Who
//     wrote a fence asks [Fold.Epoch] whether a later one has come.
//  2. Counting. A record is stale if a fence of a higher epoch lies before it
//     (stale). Stale records count for nobody; the others are ordered by (epoch,
//     version).
//  3. Completion. [Fold.Completion] is what the counting commit row holds and no
//     counted record of its own says.
//  4. Commit row. Its content counts at once and whole; a row above its version is
//     held until that commit row, or a later one, comes (addCommit, place).
//  5. Finish. [Fold.Next] says how far the log was read.
//  6. Heal. [Fold.Heal] is what must be written again because the last record of
//     its key does not count, or a commit row that does not count names the key.
//  7. Gaps. After a gap in the offsets, and at the start, the fold only collects:
//     [Fold.NeedEnd] asks for the log's end, which must be asked after the gap was
//     seen, and [Fold.EndIs] tells it. Once that end is reached it shows all.
//  8. Decisions. The current commit row's come with [Fold.Take].
//  9. Purge. [Fold.Purge] is what may go; [Fold.Outdated] says that a follower may have
//     missed what went.
//
// # A copy of the table
//
// A follower may keep records and start again from its copy: it adds them in the
// order of their offsets, as if they were a compacted log, which they are. The
// copy must hold, for every key, its last record and its last record that counted
// ([Fold.Add] says which do), and every fence.
package fold
