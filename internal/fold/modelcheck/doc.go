// Package modelcheck explores the protocol of "One owner, by the log" (DESIGN.md): all
// states of a small catalog, breadth first, so that what breaks a promise is found by
// the shortest way to it. It drives the project's own fold and what owners decide with
// it (package fold: Add, NeedEnd and EndIs, Take, Completion, Heal, Recover, CheckClaim,
// CommitRow, Ring, Written); of its own it has only what Kafka does, what stops and goes
// on when, and the promises.
//
// # What is modelled
//
// The table is a list of records with offsets, the decisions topic a list, the group's
// offset a number. Every move is one of these, at any time, in any order:
//
//   - An owner recovers the table, writes its fence, reads up to it, checks, begins to
//     write again what Completion and Heal say. Nothing keeps owners apart: each may
//     rest at any step, for ever (a crash) or until it goes on (SIGSTOP), while others
//     take over.
//   - A record of an owner's flight reaches its topic; the flight's acks are there when
//     all have. An owner that crashed with half a flight written is one that rests then.
//   - An owner at work decides a batch, any verdict, and sends its commit row; after
//     the ack rows, ids and decisions; it reads back, and answers; it heals.
//   - Compaction keeps the last record of each key below any offset; one that comes
//     later takes what was purged.
//   - An owner purges the drop rows that it may.
//   - A node reads one record; asks for the end; hears the answer, later.
//   - A stranger writes a tombstone.
//
// # What is assumed
//
//   - Compaction comes no further than the first record that lies over a good one and
//     counts for nothing, while an owner has not healed it: min.compaction.lag.ms is
//     longer than healing takes (checker.healed). A time without an owner that is longer
//     than the lag, with something to heal, is outside; owners report it.
//   - What was purged stays as a tombstone for longer than a node that begins from
//     nothing needs to come to the end (delete.retention.ms; checker.expired).
//   - What one producer sends in a flight to one topic arrives in that order
//     (Config.AnyOrder: in any).
//   - The log loses nothing that was acked.
//
// # What must hold
//
//   - Each offset is decided once; versions go up, with none left out (checker.decide).
//   - What an owner answers, and what nodes tell and show, is what the log decided; a
//     node shows whole catalogs only, and never goes back (checker.look).
//   - A node that begins now comes to the end, and has all: the rows, the statement ids,
//     and for each offset the decision, from the commit row or the topic (invariants).
//   - Who takes over judges from the rows of the last version; no claim is refused.
//
// # How it stays small
//
// Records, folds and texts are kept once and named by numbers. A node that has begun to
// read goes on until it asks something or compaction comes; an owner reads when that
// changes what it does. Neither leaves anything out: what was moved commutes.
//
// The mutations take one rule out each (Rules); their stories are in testdata, and the
// bounds and what came of it in DESIGN.md.
package modelcheck
