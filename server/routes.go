package server

import (
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// endpoint answers one request. A *Problem that it returns is written by the
// caller; after it has begun to write it returns nil.
type endpoint func(w http.ResponseWriter, r *http.Request) *Problem

// routes is the table of docs/http.md.
func (s *Server) routes() http.Handler {
	type route struct {
		method, path string
		serve        endpoint
	}
	table := []route{
		{"POST", "/v1/statements", s.postStatement},
		{"GET", "/v1/statements/{id}", s.getStatement},
		{"POST", "/v1/check", s.postCheck},
		{"GET", "/v1/definitions", s.getDefinitions},
		{"GET", "/v1/definitions/{name}", s.getDefinition},
		{"GET", "/v1/decisions", s.getDecisions},
		{"GET", "/v1/watch", s.getWatch},
		{"GET", "/v1/failures", s.getFailures},
		{"GET", "/v1/lineage/{name}", s.getLineage},
		{"GET", "/v1/status", s.getStatus},
		{"GET", "/v1/nodes", s.getNodes},
		{"POST", "/v1/query", s.postQuery},
		{"GET", "/livez", s.getLive},
		{"GET", "/readyz", s.getReady},
	}
	mux := http.NewServeMux()
	methods := map[string][]string{"/metrics": {"GET", "HEAD"}}
	for _, r := range table {
		mux.Handle(r.method+" "+r.path, s.metrics.observe(r.path, answer(r.serve)))
		methods[r.path] = append(methods[r.path], r.method)
		if r.method == "GET" {
			methods[r.path] = append(methods[r.path], "HEAD")
		}
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.cfg.Metrics, promhttp.HandlerOpts{}))
	for path, allowed := range methods {
		mux.Handle(path, answer(methodNotAllowed(allowed)))
	}
	mux.Handle("/", answer(func(_ http.ResponseWriter, r *http.Request) *Problem {
		return problemf(http.StatusNotFound, "NOT_FOUND", "there is nothing at %s; the paths are in docs/http.md", r.URL.Path)
	}))
	return mux
}

func methodNotAllowed(allowed []string) endpoint {
	slices.Sort(allowed)
	list := strings.Join(allowed, ", ")
	return func(w http.ResponseWriter, r *http.Request) *Problem {
		w.Header().Set("Allow", list)
		return problemf(http.StatusMethodNotAllowed, CodeMethodNotAllowed, "%s does not take %s; it takes %s", r.URL.Path, r.Method, list)
	}
}

func answer(serve endpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := serve(w, r); p != nil {
			writeProblem(w, p)
		}
	})
}
