package duckdb

import (
	linked "container/list"
	"sync"
)

// checkedQueries remembers texts that are through the gate. What the gate says of a
// text hangs on the text, the base and the folders of the lake, none of which changes
// while an engine lives; what is defined does not come into it. So a text that was let
// through once may be let through again without asking the engine's parser.
//
// Refusals are not remembered: they are rare, and made anew for each caller to change.
type checkedQueries struct {
	mu    sync.Mutex
	byKey map[string]*linked.Element // of *checkedQuery
	used  linked.List                // the last one used first
	bytes int                        // of all texts
}

// Bounds on what is remembered. A walked text takes about twenty times its length.
const (
	maxCheckedText  = 16 << 10 // a longer one is not remembered
	maxCheckedBytes = 512 << 10
	maxChecked      = 1024
)

// get gives the query of a text, nil when it is not known. It is shared: nobody may
// change it.
func (c *checkedQueries) get(sql string) *checkedQuery {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[sql]
	if e == nil {
		return nil
	}
	c.used.MoveToFront(e)
	return e.Value.(*checkedQuery)
}

// add remembers a query, and forgets those that were not used for the longest time.
func (c *checkedQueries) add(q *checkedQuery) {
	if len(q.sql) > maxCheckedText {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = map[string]*linked.Element{}
	}
	if c.byKey[q.sql] != nil {
		return
	}
	c.byKey[q.sql] = c.used.PushFront(q)
	c.bytes += len(q.sql)
	for c.bytes > maxCheckedBytes || c.used.Len() > maxChecked {
		oldest := c.used.Remove(c.used.Back()).(*checkedQuery)
		delete(c.byKey, oldest.sql)
		c.bytes -= len(oldest.sql)
	}
}
