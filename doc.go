// Package viewkeeper is the vocabulary of the system: names, statements,
// definitions, decisions, rows, versions and error codes.
//
// It holds values and their text forms only, and imports nothing beyond the
// standard library, so that every other package can speak in its words. One
// word has one meaning, the one that the glossary of DESIGN.md gives it; "view"
// alone means goka's follower of the table, a SQL view is a [Definition].
//
// The path of a statement goes straight down the tree: ddl parses it, registry
// judges it, codec writes it, processor commits it, view follows it, registry
// builds the next factory from it, and server answers queries through that.
package viewkeeper
