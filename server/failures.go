package server

import (
	"net/http"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// failure is why a definition does not build on this node. RootCause is null for a
// root cause itself; Since is the catalog version at which it was found here.
type failure struct {
	Name      viewkeeper.Name      `json:"name"`
	Stage     registry.Stage       `json:"stage"`
	Code      viewkeeper.Code      `json:"code"`
	Reason    string               `json:"reason"`
	Position  *viewkeeper.Position `json:"position"`
	RootCause *viewkeeper.Name     `json:"root_cause"`
	Since     viewkeeper.Version   `json:"since"`
}

func newFailure(f *registry.Failure) failure {
	return failure{Name: f.Name, Stage: f.Stage, Code: f.Code, Reason: f.Reason, Position: f.Position, RootCause: f.RootCause, Since: f.Since}
}

func (s *Server) getFailures(w http.ResponseWriter, _ *http.Request) *Problem {
	f, problem := s.current(w)
	if problem != nil {
		return problem
	}
	list := []failure{}
	for _, broken := range f.Failures() {
		list = append(list, newFailure(broken))
	}
	writeJSON(w, http.StatusOK, map[string][]failure{"failures": list})
	return nil
}
