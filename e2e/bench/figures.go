package main

import "context"

// measure takes one figure's numbers. Its context ends when it takes far too long.
type measure func(context.Context, *Env) ([]Figure, error)

// named is a figure's place in the run.
type named struct {
	id  string
	run measure
}

// figures are all that there are, in the order of the table.
func figures() []named {
	return []named{
		{"P1", p1},
		// judging
		{"P2", p2},
		// starting
		{"P3", p3},
		// the current factory
		{"P4", p4},
		// deciding
		{"P5", p5},
		// memory
		{"P6", p6},
		// queries
		{"P7", p7},
		// large results
		{"P8", p8},
		// a fleet
		{"P9", p9},
	}
}
