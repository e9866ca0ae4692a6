package server

import (
	"net/http"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// lineageEdge goes the way of the data: To reads From.
type lineageEdge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// getLineage follows reads up (what the name reads, and what that reads) and down
// (who reads it).
func (s *Server) getLineage(w http.ResponseWriter, r *http.Request) *Problem {
	name, problem := pathName(r)
	if problem != nil {
		return problem
	}
	p := params{r: r}
	direction := map[string]registry.Direction{"up": registry.Up, "down": registry.Down, "both": registry.Both}[p.oneOf("direction", "both", "up", "down", "both")]
	depth := p.count("depth", 0, 1<<30)
	if p.problem != nil {
		return p.problem
	}
	f, problem := s.current(w)
	if problem != nil {
		return problem
	}
	lineage, ok := f.Lineage(name, direction, depth)
	if !ok {
		return problemf(http.StatusNotFound, viewkeeper.CodeNotFound, "there is no definition or base relation %s at version %s", name, f.Version())
	}
	edges := []lineageEdge{}
	for _, e := range lineage.Edges {
		edges = append(edges, lineageEdge{From: e.From.Name, To: e.To.Name})
	}
	writeJSON(w, http.StatusOK, struct {
		Nodes []viewkeeper.Reference `json:"nodes"`
		Edges []lineageEdge          `json:"edges"`
	}{emptyIfNil(lineage.Nodes), edges})
	return nil
}
