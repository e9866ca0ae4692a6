package server

import (
	"net/http"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// postCheck says what the judge would say. Nothing is written.
func (s *Server) postCheck(w http.ResponseWriter, r *http.Request) *Problem {
	sub, problem := s.readSubmission(w, r)
	if problem != nil {
		return problem
	}
	if problem := notReady(s.cfg.Node.Status()); problem != nil {
		return problem
	}
	if sub.ID == "" {
		sub.ID = "check"
	}
	// The key is checked only against what a producer chose; here nobody did.
	sub.Key, _ = RecordKey(s.cfg.Limits, sub.SQL, sub.ID)
	sub.At = time.Now().UTC().Truncate(time.Millisecond) // as a broker would say it
	d, at, err := s.cfg.Checker.Check(r.Context(), sub)
	if err != nil {
		return engineProblem(sub.SQL, err)
	}
	d = d.ForClient()
	d.Normalize()
	writeJSON(w, http.StatusOK, struct {
		Decision  viewkeeper.Decision `json:"decision"`
		AtVersion viewkeeper.Version  `json:"at_version"`
	}{d, at})
	return nil
}
