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
)

// serveOwner answers for a process that is an owner only and follows nothing: is it
// alive, does it work, its metrics. A standby is ready: it is there to take over.
func serveOwner(ctx context.Context, l net.Listener, o *owner, spec ownerSpec) error {
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, status int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		// An error here is the client's going.
		_ = json.NewEncoder(w).Encode(body)
	}
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, map[string]bool{"live": true})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		st := o.Status()
		ready := st.State == processor.StateOwner || st.State == processor.StateStandby
		status := http.StatusOK
		reasons := slices.Sorted(maps.Keys(st.Reasons))
		if !ready {
			status = http.StatusServiceUnavailable
			if len(reasons) == 0 {
				reasons = []string{viewkeeper.ReasonStarting}
			}
		}
		answer := map[string]any{"ready": ready, "reasons": append([]string{}, reasons...), "state": st.State}
		if len(st.Reasons) > 0 {
			answer["details"] = st.Reasons
		}
		reply(w, status, answer)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(spec.metrics, promhttp.HandlerOpts{}))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
