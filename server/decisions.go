package server

import (
	"net/http"

	"github.com/viewkeeper/viewkeeper"
)

// getDecisions pages through the history, oldest first. Each decision has its SQL
// here, and the rows that it changed: the answer to "what was this before".
func (s *Server) getDecisions(w http.ResponseWriter, r *http.Request) *Problem {
	p := params{r: r}
	q := DecisionQuery{Since: p.version("since"), Name: p.name("name"), Limit: p.count("limit", defaultPage, maxPage)}
	if p.problem != nil {
		return p.problem
	}
	page, err := s.cfg.Node.Decisions(r.Context(), q)
	if err != nil {
		return problemf(http.StatusInternalServerError, CodeInternal, "reading the history: %v", err)
	}
	answer := struct {
		Decisions    []viewkeeper.Decision `json:"decisions"`
		CompleteFrom viewkeeper.Version    `json:"complete_from"`
		Next         *viewkeeper.Version   `json:"next"`
	}{Decisions: emptyIfNil(page.Decisions), CompleteFrom: page.CompleteFrom}
	for i := range answer.Decisions {
		answer.Decisions[i].Normalize()
	}
	if n := len(answer.Decisions); page.More && n > 0 {
		answer.Next = &answer.Decisions[n-1].Version
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}
