package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/processor"
	"github.com/viewkeeper/viewkeeper/server"
	"github.com/viewkeeper/viewkeeper/view"
)

// ownerStatus is what a process that is an owner only says of itself. What it has in
// common with a node's status has the same name.
type ownerStatus struct {
	Node         string             `json:"node"`
	Catalog      string             `json:"catalog"`
	State        processor.State    `json:"state"`
	Since        time.Time          `json:"since"`
	Ready        bool               `json:"ready"`
	ReadyReasons []string           `json:"ready_reasons"`
	Degraded     []string           `json:"degraded"`
	Details      map[string]string  `json:"details,omitempty"`
	Version      viewkeeper.Version `json:"version"`
	Epoch        viewkeeper.Epoch   `json:"epoch"`
	// LastFailure is why its work last began anew.
	LastFailure string    `json:"last_failure,omitempty"`
	At          time.Time `json:"at"`
}

// ownerStatusOf reads a processor's status. A standby is ready: it is there to take
// over. What is wrong with one that is ready makes it degraded.
func ownerStatusOf(st processor.Status, spec ownerSpec) ownerStatus {
	s := ownerStatus{
		Node: spec.id, Catalog: spec.catalog, State: st.State, Since: st.Since.UTC(), Version: st.Version, Epoch: st.Epoch,
		Ready:        st.State == processor.StateOwner || st.State == processor.StateStandby,
		ReadyReasons: []string{}, Degraded: []string{}, LastFailure: st.Err, At: time.Now().UTC().Truncate(time.Millisecond),
	}
	if len(st.Reasons) > 0 {
		s.Details = st.Reasons
	}
	codes := slices.AppendSeq([]string{}, maps.Keys(st.Reasons))
	slices.Sort(codes)
	switch {
	case s.Ready:
		s.Degraded = codes
	case len(codes) > 0:
		s.ReadyReasons = codes
	default:
		s.ReadyReasons = []string{viewkeeper.ReasonStarting}
	}
	return s
}

// serveOwner answers for a process that is an owner only and follows nothing: is it
// alive, does it work, its metrics.
func serveOwner(ctx context.Context, l net.Listener, o *owner, spec ownerSpec) error {
	srv := &http.Server{Handler: ownerHandler(o.Status, spec), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func ownerHandler(status func() processor.Status, spec ownerSpec) http.Handler {
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, status int, contentType string, body any) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		// An error here is the client's going.
		_ = json.NewEncoder(w).Encode(body)
	}
	const asJSON = "application/json"
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, asJSON, map[string]bool{"live": true})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		s := ownerStatusOf(status(), spec)
		code := http.StatusOK
		if !s.Ready {
			code = http.StatusServiceUnavailable
		}
		reply(w, code, asJSON, struct {
			Ready    bool              `json:"ready"`
			State    processor.State   `json:"state"`
			Reasons  []string          `json:"reasons"`
			Degraded []string          `json:"degraded"`
			Details  map[string]string `json:"details,omitempty"`
		}{s.Ready, s.State, s.ReadyReasons, s.Degraded, s.Details})
	})
	mux.HandleFunc("GET /v1/status", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, asJSON, ownerStatusOf(status(), spec))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(spec.metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusNotFound, "application/problem+json", server.Problem{
			Status: http.StatusNotFound, Code: viewkeeper.CodeNotFound, Title: "There is no such thing here",
			Detail: "this process is an owner only, and answers GET /livez, /readyz, /v1/status and /metrics; ask a node for " + r.URL.Path,
		})
	})
	return mux
}

// tellNode has the node of a process that is an owner too show what is wrong with the
// owner, until ctx ends: what keeps it from owning is known to nobody else.
func tellNode(ctx context.Context, p *processor.Processor, n *view.Node) {
	var last map[string]string
	// It ends with ctx alone, since nothing is ever what it waits for.
	_, _ = p.WaitStatus(ctx, func(s processor.Status) bool {
		if !maps.Equal(s.Reasons, last) {
			last = s.Reasons
			n.SetOwnReasons(s.Reasons)
		}
		return false
	})
}
