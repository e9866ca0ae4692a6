package modelcheck

import (
	"encoding/binary"
	"slices"
)

type offset int16

// entry is a record in the log. counts says that it counted when it was written:
// ground truth, which no follower is told.
type entry struct {
	at     offset
	record recordID
	counts bool
}

// said is a record of the decisions topic.
type said struct {
	version int8
	epoch   int8
	text    textID
}

// Where an owner is. What it does next is in owner.go.
type place int8

const (
	nowhere   place = iota
	recovered       // goka has recovered the table
	fenced          // the fence is written
	gone
	claimed // it has read up to it, and is at work
)

// What a flight holds.
type flight int8

const (
	nothing flight = iota
	completion
	commitRow
	firstCommitRow // which is acked, and must be read back
	rowsAndDecisions
	healing
	purgeRow // the commit row that says what is purged
	purging
)

type owner struct {
	place    place
	fold     foldID
	epoch    int8
	fence    recordID
	fenceAt  offset
	last     recordID // the commit row that the next one goes on from
	ring     recordID // the slot of all ids
	written  offset   // fold.Written
	healedTo offset
	first    bool

	// What it sent and the brokers do not have yet.
	flight    flight
	table     []recordID
	decisions []said
	commit    recordID   // what the flight is about
	then      []recordID // what follows a purgeRow
	// What is acked and not yet answered.
	open []batch
}

// batch is a batch that waits for being read back: its last record, its commit row.
type batch struct {
	last   offset
	commit recordID
}

// follower is a node that reads slowly.
type follower struct {
	fold  foldID
	shown int8 // the highest version that it showed
	waits bool // for an answer about the end
	busy  bool // see followerMoves
	gap   int8
	end   offset
}

type state struct {
	log       []entry
	end       offset
	decisions []said
	committed int8 // the group's offset
	owners    []owner
	follower  follower

	commits, compactions, strangers, purges, expiries int8 // how many there were

	// Ground truth.

	epoch int8     // of the highest fence
	truth []textID // what was decided of each version, from 1
	// lag is the offset below which an owner believes that all is healed.
	lag offset

	// fresh is what a follower from nothing has at the end; it follows from log.
	fresh foldID
}

func (s *state) clone() *state {
	c := *s
	c.log = slices.Clone(s.log)
	c.decisions = slices.Clone(s.decisions)
	c.owners = slices.Clone(s.owners)
	c.truth = slices.Clone(s.truth)
	return &c
}

// append appends all that tells this state from others.
func (s *state) append(b []byte) []byte {
	n := func(values ...int) {
		for _, v := range values {
			b = binary.AppendVarint(b, int64(v))
		}
	}
	n(len(s.log), int(s.end))
	for _, e := range s.log {
		n(int(e.at), int(e.record))
		if e.counts {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	saidAll := func(list []said) {
		n(len(list))
		for _, d := range list {
			n(int(d.version), int(d.epoch), int(d.text))
		}
	}
	saidAll(s.decisions)
	n(int(s.committed), int(s.commits), int(s.compactions), int(s.strangers), int(s.purges), int(s.expiries), int(s.epoch), int(s.lag), len(s.truth))
	for _, t := range s.truth {
		n(int(t))
	}
	for i := range s.owners {
		o := &s.owners[i]
		n(int(o.place), int(o.fold), int(o.epoch), int(o.fence), int(o.fenceAt), int(o.last), int(o.ring), int(o.written), int(o.healedTo), int(o.flight), int(o.commit), len(o.table))
		if o.first {
			b = append(b, 1)
		}
		for _, r := range o.table {
			n(int(r))
		}
		saidAll(o.decisions)
		n(len(o.then))
		for _, r := range o.then {
			n(int(r))
		}
		n(len(o.open))
		for _, w := range o.open {
			n(int(w.last), int(w.commit))
		}
	}
	f := &s.follower
	n(int(f.fold), int(f.shown), int(f.gap), int(f.end))
	flags := byte(0)
	if f.waits {
		flags |= 1
	}
	if f.busy {
		flags |= 2
	}
	return append(b, flags)
}
