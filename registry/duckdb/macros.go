package duckdb

import (
	"context"
	"fmt"

	"github.com/viewkeeper/viewkeeper"
)

// macro is a macro of the base, with the trees of its overloads.
type macro struct {
	name   viewkeeper.Name
	table  bool
	bodies []macroBody
}

type macroBody struct {
	parameters []parameter
	tree       object // an expression, or a query node of a table macro
}

type parameter struct {
	name     string // folded
	fallback object // its default, or nil
}

// required is the number of parameters without a default.
func (b *macroBody) required() int {
	n := 0
	for _, p := range b.parameters {
		if p.fallback == nil {
			n++
		}
	}
	return n
}

// addMacro parses the macro that a statement of the base makes.
func (b *baseCatalog) addMacro(ctx context.Context, g *gate, s *baseStatement) error {
	if s.kind != "macro" {
		return nil
	}
	m := &macro{name: s.name}
	for _, part := range s.parts() {
		m.table = m.table || part.table
		text := part.text
		if !part.table {
			text = "SELECT " + text
		}
		node, refusal, err := g.tree(ctx, text, lex(text), forBase)
		switch {
		case err != nil:
			return err
		case refusal != nil:
			return errorInBase(s.number, s.text, "the macro's text can't be followed, so nobody could say what a definition that calls it reads: %s", refusal.Message)
		}
		body := macroBody{tree: node}
		if !part.table {
			items := objects(node, "select_list")
			if len(items) != 1 {
				return errorInBase(s.number, s.text, "the macro's text is not one expression")
			}
			body.tree = items[0]
		}
		for _, p := range part.parameters {
			par := parameter{name: viewkeeper.Fold(p.name)}
			if p.fallback != "" {
				node, refusal, err := g.tree(ctx, "SELECT "+p.fallback, lex("SELECT "+p.fallback), forBase)
				if err != nil {
					return err
				}
				if refusal != nil || len(objects(node, "select_list")) != 1 {
					return errorInBase(s.number, s.text, "the default of parameter %s can't be followed", p.name)
				}
				par.fallback = objects(node, "select_list")[0]
			}
			body.parameters = append(body.parameters, par)
		}
		m.bodies = append(m.bodies, body)
	}
	if len(m.bodies) == 0 {
		return errorInBase(s.number, s.text, "the macro's text was not found behind AS")
	}
	b.macros[s.name] = m // OR REPLACE: the last one counts
	return nil
}

// engineMacroCost is what a call of one of the engine's own macros comes to.
type engineMacroCost struct {
	judgement judgement
	fixed     int   // nodes of the body
	perUse    []int // how often the body uses each parameter
}

func (e *engineMacroCost) uses(i int) int {
	if i < len(e.perUse) {
		return e.perUse[i]
	}
	return 1
}

// engineMacro gives the cost of one of the engine's own macros, or nil when name is
// none. Each is walked once, the first time that somebody calls it.
func (g *gate) engineMacro(name string) *engineMacroCost {
	if e, known := g.engine[name]; known {
		return e
	}
	g.engine[name] = nil // also while its own body is walked
	overloads := g.functions.macros[name]
	if len(overloads) == 0 {
		return nil
	}
	e := &engineMacroCost{judgement: judgement{standing: allowed}}
	for _, m := range overloads {
		j := g.judgeEngineMacro(m, e)
		if j.standing > e.judgement.standing {
			e.judgement = j
		}
	}
	g.engine[name] = e
	return e
}

func (g *gate) judgeEngineMacro(m engineMacro, e *engineMacroCost) judgement {
	if m.schema == "pg_catalog" && m.text != "lower(typeof(expression))" {
		return judgement{standing: refused, reason: nodeLocal, queries: true}
	}
	text := m.text
	if !m.table {
		text = "SELECT " + text
	}
	node, refusal, err := g.tree(context.Background(), text, lex(text), forBase)
	if err != nil || refusal != nil {
		return judgement{standing: refused, reason: ownInternals}
	}
	size := func(weights ...int) (int, *walker) {
		w := newWalker(g, forDefinition, text, nil)
		w.parameters = map[string]int{}
		for i, p := range m.parameters {
			w.parameters[viewkeeper.Fold(p)] = weights[i]
		}
		if m.table {
			w.queryNode(node)
			return w.nodes, w
		}
		return w.expr(objects(node, "select_list")[0]), w
	}
	weights := make([]int, len(m.parameters))
	fixed, w := size(weights...)
	e.fixed = max(e.fixed, fixed)
	for i := range weights {
		weights[i] = 1
		n, _ := size(weights...)
		weights[i] = 0
		if i == len(e.perUse) {
			e.perUse = append(e.perUse, 0)
		}
		e.perUse[i] = max(e.perUse[i], n-fixed)
	}
	switch {
	case w.err != nil:
		return judgement{standing: refused, reason: fmt.Sprintf("is a macro of the engine that is not allowed: %s", w.err.Message)}
	case w.out.Volatile != nil:
		return judgement{standing: volatile, reason: dependsOnTime}
	}
	return judgement{standing: allowed}
}
