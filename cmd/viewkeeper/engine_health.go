package main

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// engineHealth gathers what becomes of a node's engines for its status. The engines
// start before the node is made; what happens until then is told at once after.
type engineHealth struct {
	mu     sync.Mutex
	losses map[string]string // what is lost, and how that came about
	report func(detail string)
}

func newEngineHealth() *engineHealth {
	return &engineHealth{losses: map[string]string{}, report: func(string) {}}
}

// changed gives the function that an engine tells of its losses.
func (h *engineHealth) changed(what string) func(loss string) {
	return func(loss string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.losses[what] = what + " was lost and is being started again: " + loss
		if loss == "" {
			delete(h.losses, what)
		}
		h.say()
	}
}

// tell sets who is told: all losses in a sentence each, "" when there are none.
func (h *engineHealth) tell(report func(detail string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.report = report
	h.say()
}

func (h *engineHealth) say() {
	h.report(strings.Join(slices.Sorted(maps.Values(h.losses)), "; "))
}
