package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// getStatus says what the node says of itself. With min_version it waits for that
// version first, up to timeout.
func (s *Server) getStatus(w http.ResponseWriter, r *http.Request) *Problem {
	p := params{r: r}
	v, timeout := p.version("min_version"), p.duration("timeout", defaultWait)
	if p.problem != nil {
		return p.problem
	}
	ctx, cancel := context.WithTimeout(r.Context(), timeout)
	defer cancel()
	if err := s.cfg.Node.WaitVersion(ctx, v); err != nil {
		st := s.cfg.Node.Status()
		return problemf(http.StatusGatewayTimeout, CodeTimeout, "version %s was not reached in %s; node %s is at %s", v, timeout, st.Node, st.Version)
	}
	st := normalized(s.cfg.Node.Status())
	w.Header().Set(HeaderVersion, st.Version.String())
	writeJSON(w, http.StatusOK, st)
	return nil
}

// getNodes lists every live node, from the nodes topic, with how it compares with the
// others. With min_version it waits
// first until all of them have that version, up to timeout.
func (s *Server) getNodes(w http.ResponseWriter, r *http.Request) *Problem {
	p := params{r: r}
	v, timeout := p.version("min_version"), p.duration("timeout", defaultWait)
	if p.problem != nil {
		return p.problem
	}
	if v > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), timeout)
		defer cancel()
		if _, missing, err := s.cfg.Node.WaitFleet(ctx, v); err != nil {
			return problemf(http.StatusGatewayTimeout, CodeTimeout, "not every live node reached version %s in %s; missing: %s", v, timeout, strings.Join(missing, ", "))
		}
	}
	list := []viewkeeper.NodeStatus{}
	for _, st := range s.cfg.Node.Nodes() {
		st.Status = normalized(st.Status)
		list = append(list, st)
	}
	writeJSON(w, http.StatusOK, map[string][]viewkeeper.NodeStatus{"nodes": list})
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
