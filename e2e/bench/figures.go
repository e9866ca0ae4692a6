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
		{"P4", p4},
		{"P5", p5},
		{"P7", p7},
		{"P8", p8},
	}
}
