package server

import (
	"context"

	"github.com/viewkeeper/viewkeeper"
)

// systemTable gives the rows of one table of the schema vk. They are the HTTP
// answers' own objects where there is one, so that the two never differ. A table
// that this server does not know is empty.
func (s *Server) systemTable(ctx context.Context, table string) (any, error) {
	switch table {
	case "definitions":
		return s.systemDefinitions(), nil
	case "columns":
		return s.systemColumns(), nil
	case "reads":
		return s.systemReads(), nil
	case "failures":
		rows := []failure{}
		for _, f := range s.cfg.Node.Current().Failures() {
			rows = append(rows, newFailure(f))
		}
		return rows, nil
	case "decisions":
		return s.systemDecisions(ctx)
	case "nodes":
		return emptyIfNil(s.cfg.Node.Nodes()), nil
	case "settings":
		rows := []map[string]string{}
		for _, set := range s.cfg.Settings {
			rows = append(rows, map[string]string{"name": set.Name, "value": set.Value, "source": set.Source})
		}
		return rows, nil
	}
	return []any{}, nil
}

func (s *Server) systemDefinitions() []definition {
	f := s.cfg.Node.Current()
	rows := make([]definition, 0, f.Len())
	for d := range f.Definitions() {
		rows = append(rows, s.definition(f, d))
	}
	return rows
}

type systemColumn struct {
	Definition viewkeeper.Name `json:"definition"`
	Position   int             `json:"position"`
	Name       string          `json:"name"`
	Type       string          `json:"type"`
}

func (s *Server) systemColumns() []systemColumn {
	rows := []systemColumn{}
	for d := range s.cfg.Node.Current().Definitions() {
		for i, c := range d.Columns {
			rows = append(rows, systemColumn{d.Row.Name, i + 1, c.Name, c.Type})
		}
	}
	return rows
}

type systemRead struct {
	Definition viewkeeper.Name `json:"definition"`
	Name       string          `json:"name"`
	Kind       viewkeeper.Kind `json:"kind"`
}

func (s *Server) systemReads() []systemRead {
	rows := []systemRead{}
	for d := range s.cfg.Node.Current().Definitions() {
		for _, read := range d.Reads {
			rows = append(rows, systemRead{d.Row.Name, read.Name, read.Kind})
		}
	}
	return rows
}

// maxSystemDecisions bounds what one query of vk.decisions is given: the newest.
// Older ones are in GET /v1/decisions.
const maxSystemDecisions = 100_000

func (s *Server) systemDecisions(ctx context.Context) ([]viewkeeper.Decision, error) {
	rows := []viewkeeper.Decision{}
	for since := viewkeeper.Version(0); ; {
		page, err := s.cfg.Node.Decisions(ctx, DecisionQuery{Since: since, Limit: maxPage})
		if err != nil {
			return nil, err
		}
		for _, d := range page.Decisions {
			d.Rows = nil // vk.decisions has no such column
			d.Normalize()
			rows = append(rows, d)
		}
		if !page.More || len(page.Decisions) == 0 {
			return rows[max(0, len(rows)-maxSystemDecisions):], nil
		}
		since = page.Decisions[len(page.Decisions)-1].Version
	}
}
