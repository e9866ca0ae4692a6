package duckdb

// part is a piece of a base statement that is a query or an expression of its own:
// what the gate's walk can read.
type part struct {
	text  string
	at    int  // its place in the statement
	table bool // a query; otherwise the expression of a scalar macro
	// parameters of the macro that the part is the body of.
	parameters []partParameter
}

type partParameter struct{ name, fallback string }

// parts finds the queries within a statement: what follows AS in CREATE TABLE,
// VIEW and MACRO, and the source of an INSERT.
func (s *baseStatement) parts() []part {
	switch s.kind {
	case "view", "table":
		for i := 0; i < len(s.tokens); i++ {
			switch t := s.tokens[i]; {
			case t.is(s.text, "as"):
				return []part{s.part(i+1, s.withoutData(), true)}
			case t.is(s.text, "(") && s.kind == "table":
				return nil // columns, and no query
			case t.is(s.text, "("):
				i = s.closing(i)
			}
		}
	case "insert":
		for i := 0; i < len(s.tokens); i++ {
			t := s.tokens[i]
			if t.is(s.text, "(") && !s.beginsQuery(i+1) {
				i = s.closing(i)
				continue
			}
			if s.beginsQuery(i) || t.is(s.text, "(") {
				return []part{s.part(i, s.queryEnd(i), true)}
			}
		}
	case "macro":
		return s.macroParts()
	}
	return nil
}

func (s *baseStatement) part(from, to int, table bool) part {
	if from >= to {
		return part{}
	}
	at := s.tokens[from].at
	return part{text: s.text[at:s.tokens[to-1].end], at: at, table: table}
}

// withoutData gives the end of a CREATE TABLE's query: before WITH [NO] DATA.
func (s *baseStatement) withoutData() int {
	n := len(s.tokens)
	if s.kind != "table" || n < 3 || !s.tokens[n-1].is(s.text, "data") {
		return n
	}
	n--
	if s.tokens[n-1].is(s.text, "no") {
		n--
	}
	if s.tokens[n-1].is(s.text, "with") {
		return n - 1
	}
	return len(s.tokens)
}

func (s *baseStatement) beginsQuery(i int) bool {
	return i < len(s.tokens) && isQueryWord(s.text, s.tokens[i])
}

// queryEnd finds the end of an INSERT's query: its ON CONFLICT or RETURNING.
func (s *baseStatement) queryEnd(from int) int {
	for i := from; i < len(s.tokens); i++ {
		t := s.tokens[i]
		switch {
		case t.is(s.text, "("):
			i = s.closing(i)
		case t.is(s.text, "returning"), t.is(s.text, "on") && i+1 < len(s.tokens) && s.tokens[i+1].is(s.text, "conflict"):
			return i
		}
	}
	return len(s.tokens)
}

// closing gives the index of the bracket that closes the one at i.
func (s *baseStatement) closing(i int) int {
	depth := 0
	for ; i < len(s.tokens); i++ {
		if s.tokens[i].kind != tokenSymbol {
			continue
		}
		switch s.text[s.tokens[i].at] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(s.tokens) - 1
}

// macroParts splits CREATE MACRO name (p, q := 1) AS body [, (p) AS body ...].
func (s *baseStatement) macroParts() []part {
	var out []part
	i := 0
	for i < len(s.tokens) && !s.tokens[i].is(s.text, "(") {
		i++
	}
	for i < len(s.tokens) && s.tokens[i].is(s.text, "(") {
		end := s.closing(i)
		parameters := s.parameters(i+1, end)
		i = end + 1
		if i >= len(s.tokens) || !s.tokens[i].is(s.text, "as") {
			return out
		}
		i++
		table := i < len(s.tokens) && s.tokens[i].is(s.text, "table")
		if table {
			i++
		}
		from := i
		for i < len(s.tokens) && !s.nextOverload(i) {
			if t := s.tokens[i]; t.kind == tokenSymbol && (t.is(s.text, "(") || t.is(s.text, "[") || t.is(s.text, "{")) {
				i = s.closing(i)
			}
			i++
		}
		p := s.part(from, min(i, len(s.tokens)), table)
		p.parameters = parameters
		out = append(out, p)
		i++ // the comma
	}
	return out
}

// nextOverload reports whether the comma at i ends a body: (parameters) AS follows.
func (s *baseStatement) nextOverload(i int) bool {
	if !s.tokens[i].is(s.text, ",") || i+1 >= len(s.tokens) || !s.tokens[i+1].is(s.text, "(") {
		return false
	}
	end := s.closing(i + 1)
	return end+1 < len(s.tokens) && s.tokens[end+1].is(s.text, "as")
}

// parameters reads name [type] [:= default], separated by commas.
func (s *baseStatement) parameters(from, to int) []partParameter {
	var out []partParameter
	for i := from; i < to; {
		end := i
		for end < to && !s.tokens[end].is(s.text, ",") {
			if s.tokens[end].is(s.text, "(") {
				end = s.closing(end)
			}
			end++
		}
		if name, ok := s.tokens[i].name(s.text); ok {
			p := partParameter{name: name}
			for k := i + 1; k+1 < end; k++ {
				if s.tokens[k].is(s.text, ":") && s.tokens[k+1].is(s.text, "=") && k+2 < end {
					p.fallback = s.text[s.tokens[k+2].at:s.tokens[end-1].end]
					break
				}
			}
			out = append(out, p)
		}
		i = end + 1
	}
	return out
}
