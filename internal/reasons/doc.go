// Package reasons says in a log which reasons a process has, so that a person reads
// one line for what went wrong, whatever the number of parts that ran into it and
// however often they try again: one when a reason comes, with what to do about it, one
// when it has gone, and while it lasts, or comes and goes, a summary at intervals that
// grow.
package reasons
