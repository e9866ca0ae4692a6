package server

import (
	"net/http"
	"runtime/debug"
	"time"
)

// The headers of every answer.
const (
	HeaderVersion = "Viewkeeper-Version"
	HeaderNode    = "Viewkeeper-Node"
	// HeaderStaleFor is the age in seconds of what a node serves that has lost its
	// connection to Kafka; absent when it is current.
	HeaderStaleFor = "Viewkeeper-Stale-For"
)

// middleware puts the headers of every answer, writes the access log, and turns a
// panic into a 500 that names no internals.
func (s *Server) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		st := s.cfg.Node.Status()
		h := w.Header()
		h.Set(HeaderVersion, st.Version.String())
		h.Set(HeaderNode, st.Node)
		if st.StaleFor > 0 {
			h.Set(HeaderStaleFor, seconds(st.StaleFor))
		}
		rec := &recorder{ResponseWriter: w}
		start := time.Now()
		defer func() {
			broken := recover()
			if broken != nil && broken != http.ErrAbortHandler {
				s.log.Error("a request made the server panic", "method", r.Method, "path", r.URL.Path, "panic", broken, "stack", string(debug.Stack()))
				if rec.status == 0 {
					writeProblem(rec, problemf(http.StatusInternalServerError, CodeInternal, "the server failed on this request; the node's log has the reason"))
					broken = nil
				} else {
					broken = http.ErrAbortHandler
				}
			}
			s.log.Debug("request", "method", r.Method, "path", r.URL.Path, "status", rec.status, "bytes", rec.bytes,
				"took", time.Since(start), "remote", r.RemoteAddr, "aborted", broken != nil)
			if broken != nil {
				panic(broken)
			}
		}()
		next.ServeHTTP(rec, r)
	})
}

// recorder remembers what was answered. Unwrap keeps http.ResponseController
// working through it.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
