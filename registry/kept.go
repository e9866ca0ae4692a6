package registry

import (
	"iter"

	"github.com/viewkeeper/viewkeeper"
)

// What the planner says is a function of what it is asked and of what it is: Parse
// of a text alone, Bind of a text and the columns of what that reads. So an answer can
// be kept under the digest of all that it follows from, and a start with the
// answers of the run before asks the planner nothing that it asked before. There
// is nothing to invalidate: what changed has another key.
//
// Not kept is what follows from more than that, and what is rare: a refusal (it may
// have been for a file), and the plan of a definition that reads files, whose
// columns are those of the files as they are now. A planner that does not say what its
// answers follow from ([Engine].Answers) has none of them kept.
//
// An answer is looked up by the registry and not by a planner in front of the planner:
// only here it is known what a text reads, so that an answer that is found needs
// neither its stubs nor those below.

// Kept holds answers of an earlier run. An answer comes back as it was given, or not
// at all.
type Kept interface {
	// Lookup gives the answer under a key, "" when there is none. It is called from
	// several goroutines.
	Lookup(key [32]byte) string
}

// nothingKept is a Kept without answers.
type nothingKept struct{}

func (nothingKept) Lookup([32]byte) string { return "" }

// keptFormat begins every key, so that an answer of another form is never found. It
// changes with the form of an answer (packed.go) and with what a key is made of.
const keptFormat = "viewkeeper answers 1"

// key begins the digest of a question. It reports false when the planner's answers
// can't be kept.
func (b *Base) key(method string) (fields, bool) {
	f := newFields()
	f.text(keptFormat)
	f.text(method)
	f.text(b.engine.Name)
	f.text(b.engine.Answers)
	f.text(b.engine.BaseDigest)
	return f, b.engine.Answers != ""
}

func (f fields) query(q *Query) {
	f.text(q.Text)
	f.text(q.Schema)
	f.flags(q.Strict, q.Parquet)
	f.count(len(q.Columns))
	for _, c := range q.Columns {
		f.text(c)
	}
}

func (f fields) columns(cols []viewkeeper.Column) {
	f.count(len(cols))
	for _, c := range cols {
		f.text(c.Name)
		f.text(c.Type)
	}
}

// parseKey is the key of Parse's answer to one query.
func (b *Base) parseKey(q *Query) ([32]byte, bool) {
	f, ok := b.key("parse")
	f.query(q)
	return f.sum(), ok
}

// planKey is the key of the plan of an entry, whose texts are qualified: all of its
// queries, and what each relation that they read gives. The base's are in the base's
// digest. It reports false where there is more to it.
func (b *Base) planKey(g *graph, e *entry, texts []string) ([32]byte, bool) {
	f, ok := b.key("plan")
	s := e.source
	f.text(e.name().String())
	f.text(string(e.kind()))
	f.count(len(s.parts))
	for p := range s.parts {
		ok = ok && len(s.parts[p].parsed.Files) == 0
		q := s.query(s.parts[p], texts[p])
		f.query(&q)
	}
	if e.materialized() { // what is checked of the columns is said by the options
		f.text(e.sql())
	}
	f.count(len(e.refs))
	for _, r := range e.refs {
		f.text(r.name.String())
		f.flags(r.base)
		if r.base || r.name.IsZero() {
			continue
		}
		if target := g.get(r.name); target != nil {
			f.flags(target.columns != nil)
			f.columns(target.columns)
		}
	}
	return f.sum(), ok
}

// recall finishes a source with the answers to its queries, if all of them were kept. It
// may be called for several sources at a time.
func (t *trial) recall(s *source) bool {
	queries := s.queries()
	parsed, scopes := make([]Parsed, len(queries)), make([]string, len(queries))
	for i := range queries {
		key, ok := t.base.parseKey(&queries[i])
		if !ok {
			return false
		}
		kept := t.kept.Lookup(key)
		if kept == "" {
			return false
		}
		if parsed[i], scopes[i], ok = unpackParsed(kept); !ok {
			return false
		}
	}
	for i := range scopes {
		s.parts[i].scopes = scopes[i]
	}
	s.finish(t.base, parsed)
	return true
}

// recallPlan gives the plan that was kept of an entry, nil when there is none.
func (t *trial) recallPlan(e *entry, texts []string) *planned {
	key, ok := t.base.planKey(t.after, e, texts)
	if !ok {
		return nil
	}
	p, _ := unpackPlanned(t.kept.Lookup(key))
	return p
}

// Answers gives what a planner said of all that builds in the factory, to be kept for
// another start ([Registry].Recall). It asks no planner.
func (f *Factory) Answers() iter.Seq2[[32]byte, []byte] {
	return func(yield func([32]byte, []byte) bool) {
		f.graph.each(viewkeeper.Name{}, func(e *entry) bool {
			s := e.source
			if s.err != nil {
				return true
			}
			for i, q := range s.queries() {
				key, ok := f.base.parseKey(&q)
				if ok && !yield(key, packParsed(&s.parts[i].parsed, s.parts[i].scopes)) {
					return false
				}
			}
			if !e.ok() || e.planned == nil {
				return true
			}
			texts := make([]string, len(s.parts))
			for p := range s.parts {
				texts[p], _ = s.qualify(p, e.refs)
			}
			key, ok := f.base.planKey(f.graph, e, texts)
			return !ok || yield(key, packPlanned(e.planned))
		})
	}
}
