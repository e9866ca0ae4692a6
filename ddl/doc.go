// Package ddl turns SQL text into statements and back: tokens, the statements of
// the language, change sets, script splitting, placeholders and edits that keep
// track of places. It is pure, imports the vocabulary alone, and never panics on
// any text.
//
// The dialect is DuckDB's where queries are concerned. ddl reads a query only as
// tokens: it finds where a query ends, what it is compared by, and what no query
// may hold; whether it is a query at all is the engine's to say.
//
// # Places
//
// Every error is a *[viewkeeper.Error] whose Offset counts bytes of the text that
// the caller passed in. What the engine gets is a [viewkeeper.Fragment], whose
// Source leads from its offsets back to that text; [OffsetMap] does the same for
// [ApplyEdits] and [Fill]. Chains of them compose by calling one Source after
// the other, the last change first.
//
// # Form and body
//
// [Parse] checks form, point 1 of the law: what can be said from the statement
// alone. What the law asks of a body only after the preconditions (points 4 and
// 5) stands apart in [CheckBody] and [CheckPlaceholders], so that CREATE VIEW IF
// NOT EXISTS over an existing definition never looks at its body.
//
// # Files
//
//	space.go lex.go token.go literal.go    bytes → tokens → values
//	statement.go split.go                  tokens → the statements of a script
//	parse.go set.go                        a record → one statement or change set
//	create.go options.go values.go         CREATE, the options of a materialized view
//	drop.go rename.go comment.go names.go  the other statements
//	fragment.go canonical.go               what the engine gets, what is compared
//	placeholder.go edit.go check.go        bodies: {begin}, edits, what they may not hold
//	limits.go hint.go                      sizes; what to say to what is not ours
package ddl
