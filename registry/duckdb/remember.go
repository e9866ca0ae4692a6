package duckdb

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// A text passes the gate when it is parsed, and is bound soon after, and again
// whenever something that it reads changes: by then it differs only in that names of
// relations have got their schemas. What the gate found out about it is remembered,
// so that the engine's parser need not write the same tree once more.
//
// The gate still stands before every text: what is bound is either remembered itself,
// or is proved to be a remembered text with schemas, byte for byte (see requalified).
// What the gate says depends on nothing but the text and the base, which stays the
// same while a gate is open.

// Bounds on what is remembered: enough for all texts of a large catalog.
const (
	maxRemembered      = 20_000
	maxRememberedBytes = 16 << 20
)

// remembered is what is needed of a text that was let through, to bind it.
type remembered struct {
	text  string // as the walk had it, see flattenSpaces
	refs  []walkedRef
	files []fileRef
	calls []int
	asof  bool
}

// memories holds what was let through lately, by the text as it was given. It is for
// several gates at once; what is in it is not changed.
type memories struct {
	mu    sync.Mutex
	texts map[string]*remembered
	order []string // the oldest first
	bytes int
}

func newMemories() *memories { return &memories{texts: map[string]*remembered{}} }

// add remembers a text that w was let through with.
func (m *memories) add(given string, w *walker) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.texts[given] != nil {
		return
	}
	refs := slices.Clone(w.refs)
	for i := range refs {
		refs[i].owner = nil // which holds on to all of the walk
	}
	m.texts[given] = &remembered{text: w.text, refs: refs, files: w.files, calls: w.calls, asof: w.asof}
	m.order = append(m.order, given)
	m.bytes += len(given)
	for len(m.order) > maxRemembered || m.bytes > maxRememberedBytes {
		m.bytes -= len(m.order[0])
		delete(m.texts, m.order[0])
		m.order = m.order[1:]
	}
}

func (m *memories) of(given string) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.texts[given]
}

// recall gives a walker as if the query had been walked for a definition, as far as
// that is of use to bind it, or nil when it must pass the gate.
func (g *gate) recall(q registry.Query) *walker {
	m := g.memory.of(q.Text)
	text := q.Text
	if m != nil {
		text = m.text
	} else if m = g.memory.of(q.Origin); m != nil {
		text = flattenSpaces(q.Text)
		if m = m.requalified(text); m != nil && !g.lets(m) {
			m = nil
		}
	}
	if m == nil {
		return nil
	}
	w := newWalker(g, forDefinition, text, lex(text))
	w.refs, w.files, w.calls, w.asof = m.refs, m.files, m.calls, m.asof
	return w
}

// lets reports whether the gate would let a text through that it let through without
// schemas: what it says of schemas and of the length is all that can differ.
func (g *gate) lets(m *remembered) bool {
	return len(m.text) <= g.limits.Bytes &&
		!slices.ContainsFunc(m.refs, func(r walkedRef) bool { return r.At >= 0 && g.base.isCatalog(r.Schema, r.View) })
}

// requalified gives what is remembered with its places in text, which must be the
// remembered text with a quoted schema and a dot before every reference that has no
// schema, and not differ in anything else; otherwise it gives nil.
func (m *remembered) requalified(text string) *remembered {
	out := &remembered{text: text, refs: slices.Clone(m.refs), files: slices.Clone(m.files), calls: slices.Clone(m.calls), asof: m.asof}
	var bare []*walkedRef
	for i := range out.refs {
		if r := &out.refs[i]; r.At >= 0 && r.Schema == "" {
			bare = append(bare, r)
		}
	}
	slices.SortFunc(bare, func(a, b *walkedRef) int { return cmp.Compare(a.At, b.At) })
	var places, lengths []int // of what was put in: the place in the remembered text
	old, rest := m.text, text
	done := 0
	for _, r := range bare {
		before := old[done:r.At]
		if !strings.HasPrefix(rest, before) {
			return nil
		}
		schema, length := quotedSchema(rest[len(before):])
		if length == 0 {
			return nil
		}
		r.Schema = viewkeeper.Fold(schema)
		places, lengths = append(places, r.At), append(lengths, length)
		rest = rest[len(before)+length:]
		done = r.At
	}
	if rest != old[done:] {
		return nil
	}
	// What was put in at a place belongs to what stands there; all behind it moves.
	moved := func(at int) int {
		by := 0
		for i, p := range places {
			if p < at {
				by += lengths[i]
			}
		}
		return at + by
	}
	for i := range out.refs {
		if r := &out.refs[i]; r.At >= 0 {
			r.At, r.End = moved(r.At), moved(r.End)
		}
	}
	for i := range out.files {
		if f := &out.files[i]; f.at >= 0 {
			f.at, f.end = moved(f.at), moved(f.end)
		}
	}
	for i := range out.calls {
		if out.calls[i] >= 0 {
			out.calls[i] = moved(out.calls[i])
		}
	}
	return out
}

// quotedSchema reads "schema". from the start of a text, and gives how long that is, 0
// when it is not there.
func quotedSchema(text string) (schema string, length int) {
	if !strings.HasPrefix(text, `"`) {
		return "", 0
	}
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] != '"':
		case i+1 < len(text) && text[i+1] == '"':
			i++
		case i > 1 && i+1 < len(text) && text[i+1] == '.':
			return strings.ReplaceAll(text[1:i], `""`, `"`), i + 2
		default:
			return "", 0
		}
	}
	return "", 0
}
