// Package registry is the law and the factory. It decides what becomes of a
// statement, and compiles a set of definitions into the immutable snapshot that
// a node serves. It is pure: no goroutine that outlives a call, no clock and no I/O other than
// calls on the [Planner]; time comes with the submission.
//
// One core serves all of it. A [Factory] holds a graph of definitions: their
// parsed texts, what each reads, their output columns, and why a broken one is
// broken. A trial applies changes to it, plans only what they can affect, and is
// then kept or thrown away (see DESIGN.md beside this file). On top of it stand
//
//   - [Catalog], the owner's: Judge turns a submission into a decision and rows;
//   - [BuildFactory] and [CheckDependentsSurvive], for anybody with rows in hand;
//   - [Registry], a node's: Current, Reload and what failed.
//
// Accepted rows are never judged again. Loading them marks as broken what does
// not build here, with the stage and the reason, and nothing of it is fatal.
package registry
