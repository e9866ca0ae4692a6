// Package restore puts a catalog's table back: from an export, from a node's copy, from
// the decisions topic, or from what the table itself still holds.
//
//	known.go      what the catalog's topics say now
//	decisions.go  the decisions topic, read whole
//	source.go     a catalog as something outside the table has it
//	plan.go       source and topics → what is to be written, and a report. Pure
//	write.go      the writing: a fence, then what makes the catalog, then a look at it
//
// # Versions and epochs
//
// A version is never given twice and never goes back, whatever was lost. So the plan looks
// at everything that speaks of a version: the source, the decisions, the committed
// offset, what is left in the table, what nodes say that they serve. Where the source and
// the decisions after it reach up to the highest of them, the catalog is as it was, and
// has that version, and each definition its own. Where something is missing the catalog
// is another one than was there, and gets the next version. The version base makes up
// the difference to the offsets. Epochs go on above all that was seen, by the epoch base.
//
// # At once
//
// What changes is in the commit row that the restore writes, which counts at once and
// whole; the rows that follow repeat it, and an owner completes them if the restore dies
// between. Where that is more than a record holds, the rows come first and the commit row
// last: until it is there they are held, and nobody owns. That is not possible over a
// commit row that counts, and is refused. So each crash leaves the catalog as it was, or
// as it is to be, and a restore that is run again ends what the first one began.
//
// # Owners
//
// The fence stops an owner that is alive. It comes back as fast as it can, with a fence of
// its own; if that lies before the restore's commit row, nothing of the restore counts.
// The restore reads back what it wrote, and plans and writes again.
package restore
