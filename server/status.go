package server

import (
	"net/http"

	"github.com/viewkeeper/viewkeeper"
)

func (s *Server) getStatus(w http.ResponseWriter, _ *http.Request) *Problem {
	writeJSON(w, http.StatusOK, normalized(s.cfg.Node.Status()))
	return nil
}

// getNodes lists every live node, from the nodes topic.
func (s *Server) getNodes(w http.ResponseWriter, _ *http.Request) *Problem {
	nodes, _ := s.cfg.Node.Nodes()
	list := []viewkeeper.Status{}
	for _, st := range nodes {
		list = append(list, normalized(st))
	}
	writeJSON(w, http.StatusOK, map[string][]viewkeeper.Status{"nodes": list})
	return nil
}

// getLive says that the process answers. It never looks at Kafka: a node whose
// brokers are away must not be restarted for it.
func (s *Server) getLive(w http.ResponseWriter, _ *http.Request) *Problem {
	writeJSON(w, http.StatusOK, map[string]bool{"live": true})
	return nil
}

// getReady says whether the node should be sent work, and why not.
func (s *Server) getReady(w http.ResponseWriter, _ *http.Request) *Problem {
	st := normalized(s.cfg.Node.Status())
	status := http.StatusOK
	if !st.Ready {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, struct {
		Ready    bool              `json:"ready"`
		Reasons  []string          `json:"reasons"`
		Degraded []string          `json:"degraded"`
		Details  map[string]string `json:"details,omitempty"`
	}{st.Ready, st.ReadyReasons, st.Degraded, st.Details})
	return nil
}

func normalized(st viewkeeper.Status) viewkeeper.Status {
	st.ReadyReasons = emptyIfNil(st.ReadyReasons)
	st.Degraded = emptyIfNil(st.Degraded)
	st.BrokenDefinitions = emptyIfNil(st.BrokenDefinitions)
	return st
}
