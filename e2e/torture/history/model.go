package history

import (
	"maps"
	"slices"
)

// live is a definition in the model.
type live struct {
	Def
	Version int64
	Comment string
}

// catalog is the model's state: what is live, by name. States are never changed,
// so that those of many versions can be kept.
type catalog map[string]live

// verdict is what the model says: one of codes for a refusal, none else.
type verdict struct {
	verdict string
	codes   []string
}

func refused(codes ...string) verdict { return verdict{"refused", codes} }

// decide is the law (docs/language.md) for the statements of the workload, written
// again from its text and sharing no code with the product: form, preconditions
// against the catalog before, unchanged, then whether everything builds after it.
func (c catalog) decide(s Statement, version int64) (verdict, catalog) {
	if s.Bad != "" {
		return refused("SYNTAX"), c
	}
	if _, names := c[s.Key]; names && !s.Set && !slices.Contains(s.Names(), s.Key) {
		return refused("KEY_MISMATCH"), c
	}
	if v := repeatedTarget(s); v != nil {
		return *v, c
	}
	after := maps.Clone(c)
	written := map[string]bool{} // names whose new text is this statement's
	changed := false
	for _, ch := range s.Changes {
		v, did := c.change(ch, s.Expect, version, after, written)
		if v != nil {
			return *v, c
		}
		changed = changed || did
	}
	if !changed {
		return verdict{verdict: "unchanged"}, c
	}
	own, others := after.failing(written)
	switch {
	case own:
		return refused("BIND", "CYCLE"), c
	case others:
		return refused("BREAKS_DEPENDENTS"), c
	}
	return verdict{verdict: "accepted"}, after
}

func repeatedTarget(s Statement) *verdict {
	owner := map[string]int{}
	for i, c := range s.Changes {
		for _, n := range c.targets() {
			if first, ok := owner[n]; ok && first != i {
				v := refused("DUPLICATE_TARGET")
				return &v
			}
			owner[n] = i
		}
	}
	return nil
}

// change does one change to after; what it may do is asked of c, the catalog before.
func (c catalog) change(ch Change, expect *int64, version int64, after catalog, written map[string]bool) (refusal *verdict, changed bool) {
	no := func(code string) (*verdict, bool) { v := refused(code); return &v, false }
	old, exists := c[ch.Name]
	stale := expect != nil && *expect != old.Version // 0: must not exist
	switch ch.Kind {
	case Create, Replace, IfNotExists:
		switch {
		case exists && ch.Kind == Create:
			return no("EXISTS")
		case stale:
			return no("STALE_VERSION")
		case exists && (ch.Kind == IfNotExists || old.equal(ch.Def)):
			return nil, false
		}
		after[ch.Name] = live{ch.Def, version, old.Comment}
		written[ch.Name] = true
	case Drop, DropIf, Cascade:
		for _, n := range ch.targets() {
			if _, there := c[n]; !there && ch.Kind != DropIf {
				return no("NOT_FOUND")
			}
			if expect != nil && *expect != c[n].Version {
				return no("STALE_VERSION")
			}
			if _, there := c[n]; there {
				delete(after, n)
				changed = true
			}
		}
		if ch.Kind == Cascade {
			after.cascade(ch.Name)
		}
		return nil, changed
	case Rename:
		switch _, taken := c[ch.To]; {
		case !exists:
			return no("NOT_FOUND")
		case taken:
			return no("EXISTS")
		case stale:
			return no("STALE_VERSION")
		}
		delete(after, ch.Name)
		after[ch.To] = live{old.Def, version, old.Comment}
		for n, d := range after {
			if d.reads(ch.Name) {
				d.Reads = slices.Clone(d.Reads)
				for i := range d.Reads {
					if d.Reads[i].Name == ch.Name {
						d.Reads[i].Name = ch.To
					}
				}
				d.Version = version
				after[n] = d
			}
		}
	case Comment:
		switch {
		case !exists:
			return no("NOT_FOUND")
		case stale:
			return no("STALE_VERSION")
		case old.Comment == ch.Text:
			return nil, false
		}
		old.Comment, old.Version = ch.Text, version
		after[ch.Name] = old
	}
	return nil, true
}

// cascade drops who reads what is gone, and their readers in turn.
func (c catalog) cascade(gone string) {
	for n, d := range maps.Clone(c) {
		if _, there := c[n]; there && d.reads(gone) {
			delete(c, n)
			c.cascade(n)
		}
	}
}

func (d Def) reads(name string) bool {
	return slices.ContainsFunc(d.Reads, func(r Read) bool { return r.Name == name })
}

// failing reports whether a definition does not build: one of those that the
// statement wrote, or another one.
func (c catalog) failing(written map[string]bool) (own, others bool) {
	state := map[string]bool{} // builds; absent: not known yet
	onPath := map[string]bool{}
	var builds func(name string) bool
	builds = func(name string) bool {
		if ok, known := state[name]; known {
			return ok
		}
		if onPath[name] {
			return false
		}
		onPath[name] = true
		ok := true
		for _, r := range c[name].Reads {
			from, there := c[r.Name]
			ok = ok && there && builds(r.Name) && (from.X || !r.X)
		}
		delete(onPath, name)
		state[name] = ok
		return ok
	}
	for name := range c {
		if !builds(name) {
			own = own || written[name]
			others = others || !written[name]
		}
	}
	return own, others
}

// row is what SELECT * from a definition gives, nil when it is not there.
func (c catalog) row(name string) []int64 {
	d, ok := c[name]
	if !ok {
		return nil
	}
	row := []int64{d.N}
	if d.X {
		row = append(row, d.N)
	}
	for _, r := range d.Reads {
		row = append(row, c[r.Name].N)
	}
	return row
}

// listing is the catalog as a node lists it.
func (c catalog) listing() []Listed {
	out := []Listed{}
	for _, name := range slices.Sorted(maps.Keys(c)) {
		d := c[name]
		out = append(out, Listed{Name: name, Version: d.Version, N: d.N, State: "ok", Comment: d.Comment})
	}
	return out
}
