package server

import (
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/viewkeeper/viewkeeper"
)

// endpoint answers one request. A *Problem that it returns is written by the
// caller; after it has begun to write it returns nil.
type endpoint func(w http.ResponseWriter, r *http.Request) *Problem

// routes is the table of docs/http.md: the endpoints with the parameters that each
// knows. A "*" takes any, since probes add their own.
func (s *Server) routes() http.Handler {
	type route struct {
		method, path string
		serve        endpoint
		params       string
	}
	table := []route{
		{"POST", "/v1/statements", s.postStatement, "wait timeout"},
		{"GET", "/v1/statements/{id}", s.getStatement, ""},
		{"POST", "/v1/check", s.postCheck, ""},
		{"GET", "/v1/definitions", s.getDefinitions, "like kind state limit after"},
		{"GET", "/v1/definitions/{name}", s.getDefinition, ""},
		{"GET", "/v1/decisions", s.getDecisions, "since name limit"},
		{"GET", "/v1/watch", s.getWatch, "from"},
		{"GET", "/v1/failures", s.getFailures, ""},
		{"GET", "/v1/lineage/{name}", s.getLineage, "direction depth"},
		{"GET", "/v1/status", s.getStatus, "min_version timeout"},
		{"GET", "/v1/nodes", s.getNodes, "min_version timeout"},
		{"POST", "/v1/query", s.postQuery, "min_version timeout"},
		{"GET", "/livez", s.getLive, "*"},
		{"GET", "/readyz", s.getReady, "*"},
	}
	mux := http.NewServeMux()
	methods := map[string][]string{"/metrics": {"GET", "HEAD"}}
	for _, r := range table {
		mux.Handle(r.method+" "+r.path, s.metrics.observe(r.path, answer(knowing(strings.Fields(r.params), r.serve))))
		methods[r.path] = append(methods[r.path], r.method)
		if r.method == "GET" {
			methods[r.path] = append(methods[r.path], "HEAD")
		}
	}
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.cfg.Metrics, promhttp.HandlerOpts{}))
	for at, allowed := range methods {
		mux.Handle(at, answer(methodNotAllowed(allowed)))
	}
	mux.Handle("/", answer(func(_ http.ResponseWriter, r *http.Request) *Problem {
		return problemf(http.StatusNotFound, viewkeeper.CodeNotFound, "there is nothing at %s; the paths are in docs/http.md", r.URL.Path)
	}))
	return unclean(mux)
}

// unclean answers for a path with //, . or .. in it, which the mux would send a page
// of HTML about.
func unclean(mux http.Handler) http.Handler {
	wrong := answer(func(_ http.ResponseWriter, r *http.Request) *Problem {
		return problemf(http.StatusNotFound, viewkeeper.CodeNotFound,
			"there is nothing at %s; in a name or an id write a dot or a slash that stands alone as %%2E and %%2F", r.URL.Path)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		escaped := r.URL.EscapedPath()
		if clean := path.Clean("/" + escaped); clean != escaped && clean+"/" != escaped {
			wrong.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// knowing refuses a parameter that the endpoint does not know, since a misspelt
// min_version would silently wait for nothing, and one that is given twice.
func knowing(known []string, serve endpoint) endpoint {
	return func(w http.ResponseWriter, r *http.Request) *Problem {
		if len(known) == 1 && known[0] == "*" {
			return serve(w, r)
		}
		given, err := url.ParseQuery(r.URL.RawQuery)
		if err != nil {
			return problemf(http.StatusBadRequest, CodeBadRequest, "the query of the URL can't be read: %v", err)
		}
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if !slices.Contains(known, name) {
				list := "it takes none"
				if len(known) > 0 {
					list = "it takes " + strings.Join(known, ", ")
				}
				return problemf(http.StatusBadRequest, CodeBadRequest, "%s does not know the parameter %s; %s", r.URL.Path, name, list)
			}
			if len(given[name]) > 1 {
				return problemf(http.StatusBadRequest, CodeBadRequest, "the parameter %s is given %d times; give it once", name, len(given[name]))
			}
		}
		return serve(w, r)
	}
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
