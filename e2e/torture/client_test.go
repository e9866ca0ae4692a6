package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/torture/history"
)

// The time limits of clients. They are short against the faults: clients give up,
// and what they gave up may have happened.
const (
	statementLimit = 5 * time.Second  // what the node is told
	answerLimit    = 9 * time.Second  // how long a client waits for an answer
	tailLimit      = 10 * time.Second // how long one waits at the decisions topic
	betweenTries   = 400 * time.Millisecond
)

// client sends statements one after the other until ctx ends.
func (r *run) client(ctx context.Context, number int) error {
	kafka, err := producer(r.seeds)
	if err != nil {
		return err
	}
	defer kafka.Close()
	sent := map[int]history.Op{} // what was decided, by number
	for n := 1; ctx.Err() == nil; n++ {
		c := choose(r.seed, number, n)
		op := r.op(number, n, c, sent)
		op.Call = r.now()
		if op.Door == "kafka" {
			r.byKafka(ctx, kafka, &op, c)
		} else {
			r.byHTTP(ctx, &op, c)
		}
		op.Return = r.now()
		r.keep(op)
		if op.Outcome == history.Decided && !op.Again {
			sent[n] = op
		}
		pause(ctx, c.think)
	}
	return nil
}

// op makes of a choice what is sent. Only here does it matter what happened before:
// an id is used again only when its statement was decided, and the version that is
// expected is the one that clients know.
func (r *run) op(number, n int, c choice, sent map[int]history.Op) history.Op {
	op := history.Op{Client: number, Door: "http", Statement: c.statement, Offset: -1, Outcome: history.NotWritten}
	if c.kafka {
		op.Door = "kafka"
	}
	if c.withID {
		op.Statement.ID = id(number, n)
	}
	if name := c.statement.Names(); c.expect != "" {
		expect := int64(0)
		if c.expect == "known" {
			expect = r.known(name[0])
		}
		if len(name) > 0 {
			op.Statement.Expect = &expect
		}
	}
	earlier, ok := sent[c.earlier]
	if !ok || c.kind == plain {
		return op
	}
	switch c.kind {
	case reuseID:
		if earlier.Statement.ID != "" && earlier.Statement.SQL() != op.Statement.SQL() {
			op.Statement.ID, op.Again = earlier.Statement.ID, true
		}
	case repeatID:
		if earlier.Statement.ID != "" {
			op.Statement, op.Again = earlier.Statement, true
		}
	case repeatText:
		if earlier.Statement.ID != "" { // else its text is what it is found by
			own := op.Statement.ID
			op.Statement = earlier.Statement
			op.Statement.ID = own
		}
	}
	if op.Statement.Tombstone {
		op.Door = "kafka"
	}
	return op
}

// pause waits a while, or for the end.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func (r *run) byKafka(ctx context.Context, kafka *kgo.Client, op *history.Op, c choice) {
	for try := range c.tries {
		op.Tries = try + 1
		res := kafka.ProduceSync(ctx, record(r.f.Topic("definitions"), op.Statement))
		if err := res.FirstErr(); err != nil {
			op.Outcome, op.Why = history.Unknown, err.Error()
			if op.Statement.ID == "" || ctx.Err() != nil {
				return // sent again it would be another statement
			}
			pause(ctx, betweenTries)
			continue
		}
		op.Outcome, op.Offset = history.Acked, res[0].Record.Offset
		break
	}
	if op.Outcome != history.Acked {
		return
	}
	id := op.Statement.ID
	if c.kind == reuseID && op.Again {
		id = "" // the decision of this record, not that of the id
	}
	wait, cancel := context.WithTimeout(ctx, tailLimit)
	defer cancel()
	if told, ok := r.tail.wait(wait, id, op.Offset); ok {
		op.Outcome, op.Told = history.Decided, &told
		r.learn(*op)
	}
}

// answer is what a door says to a statement: a decision, or a problem.
type answer struct {
	viewkeeper.Decision
	Reached []string `json:"reached"`
	Detail  string   `json:"detail"`
}

func (r *run) byHTTP(ctx context.Context, op *history.Op, c choice) {
	for try := range c.tries {
		op.Tries = try + 1
		status, a, err := r.post(ctx, r.nodes[(c.node+try)%len(r.nodes)], op.Statement, c.wait)
		switch {
		case err == nil && (status == http.StatusOK || status == http.StatusUnprocessableEntity):
			told := history.Tell(a.Decision)
			op.Outcome, op.Told, op.Reached = history.Decided, &told, a.Reached
			r.learn(*op)
			return
		case err == nil && status == http.StatusServiceUnavailable || notSent(err):
			// Nothing was written by this try; an earlier one may have been.
		case err == nil && status != http.StatusGatewayTimeout:
			r.odd("%s to %q: status %d %s", op.Statement.ID, op.Statement.SQL(), status, a.Detail)
			return
		default:
			op.Outcome = history.Unknown
		}
		if op.Why = a.Detail; err != nil {
			op.Why = err.Error()
		}
		if ctx.Err() != nil || op.Outcome == history.Unknown && op.Statement.ID == "" {
			return // sent again it would be another statement
		}
		pause(ctx, betweenTries)
	}
}

// notSent: nobody was there to send it to.
func notSent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

func (r *run) post(ctx context.Context, node string, s history.Statement, wait string) (status int, a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	body := map[string]any{"sql": s.SQL()}
	if s.Expect != nil {
		body["expect_version"] = *s.Expect
	}
	header := http.Header{}
	if s.ID != "" {
		header.Set("Idempotency-Key", s.ID)
	}
	resp, text, err := r.http(ctx, http.MethodPost, node, fmt.Sprintf("/v1/statements?wait=%s&timeout=%s", wait, statementLimit), body, header)
	if err != nil {
		return 0, a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return 0, a, fmt.Errorf("%w: %s", err, text)
	}
	return resp.StatusCode, a, nil
}

// http asks a node. The connection is kept for the next one.
func (r *run) http(ctx context.Context, method, node, path string, body any, header http.Header) (*http.Response, []byte, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, r.address[node]+path, bytes.NewReader(text))
	if err != nil {
		return nil, nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	// A request that may have arrived is never sent again behind our back.
	req.GetBody = nil
	resp, err := r.web.Do(req)
	if err != nil {
		return nil, nil, err
	}
	answer, err := io.ReadAll(resp.Body)
	return resp, answer, errors.Join(err, resp.Body.Close())
}

// reader asks nodes for definitions until ctx ends.
func (r *run) reader(ctx context.Context, number int) error {
	for n := 1; ctx.Err() == nil; n++ {
		x := random(r.seed, number, n)
		q := history.Query{Client: number, Node: pick(x, r.nodes)}
		if x.IntN(3) > 0 {
			q.Min = r.highest.Load() // what some client was told
		}
		if x.IntN(3) > 0 {
			q.Name = pick(x, pick(x, layers[:]))
		}
		think := time.Duration(x.ExpFloat64() * float64(80*time.Millisecond))
		q.Call = r.now()
		ok := false
		var err error
		if q.Name == "" {
			q.Min = 0
			ok, err = r.list(ctx, &q)
		} else {
			ok, err = r.query(ctx, &q)
		}
		q.Return = r.now()
		r.keepQuery(q, ok, err)
		pause(ctx, think)
	}
	return nil
}

// query reads one definition.
func (r *run) query(ctx context.Context, q *history.Query) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	resp, text, err := r.http(ctx, http.MethodPost, q.Node, "/v1/query", map[string]any{"sql": "SELECT * FROM " + q.Name, "min_version": q.Min, "timeout": "5s"}, nil)
	if err != nil {
		return false, err
	}
	var a struct {
		Rows [][]int64
		Code string
	}
	switch err := json.Unmarshal(text, &a); {
	case err == nil && resp.StatusCode == http.StatusBadRequest && a.Code == string(viewkeeper.CodeBind):
		q.Absent = true
	case resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusGatewayTimeout:
		return false, nil
	case err != nil || resp.StatusCode != http.StatusOK || len(a.Rows) != 1:
		return false, fmt.Errorf("%w: the answer to %s on %s: %d %s", errOdd, q.Name, q.Node, resp.StatusCode, text)
	default:
		q.Row = a.Rows[0]
	}
	q.Version, err = strconv.ParseInt(resp.Header.Get("Viewkeeper-Version"), 10, 64)
	return true, err
}

var errOdd = errors.New("not an answer")

func (r *run) list(ctx context.Context, q *history.Query) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	resp, text, err := r.http(ctx, http.MethodGet, q.Node, "/v1/definitions", nil, nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		return false, err
	}
	if q.Listing, err = listing(text); err != nil {
		return false, err
	}
	q.Version, err = strconv.ParseInt(resp.Header.Get("Viewkeeper-Version"), 10, 64)
	return true, err
}

func listing(text []byte) ([]history.Listed, error) {
	var a struct {
		Definitions []struct {
			Name    viewkeeper.Name
			Version viewkeeper.Version
			SQL     string
			State   string
			Comment *string
		}
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return nil, fmt.Errorf("%w: a listing: %w: %s", errOdd, err, text)
	}
	out := []history.Listed{}
	for _, d := range a.Definitions {
		out = append(out, history.List(d.Name, d.Version, d.SQL, d.State, d.Comment))
	}
	return out, nil
}

// sampler asks a node how it is until ctx ends.
func (r *run) sampler(ctx context.Context, node string) error {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if s, err := r.sample(ctx, node); err == nil {
			r.keepSample(s)
		}
	}
}

func (r *run) sample(ctx context.Context, node string) (history.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	s := history.Sample{Node: node, Call: r.now()}
	resp, text, err := r.http(ctx, http.MethodGet, node, "/v1/status", nil, nil)
	if err != nil {
		return s, err
	}
	var st viewkeeper.Status
	if err := json.Unmarshal(text, &st); err != nil || resp.StatusCode != http.StatusOK {
		return s, fmt.Errorf("status %d of %s: %w", resp.StatusCode, node, err)
	}
	s.Return = r.now()
	s.Version, s.Digest, s.BuildDigest, s.Broken, s.Ready = int64(st.Version), st.Digest, st.BuildDigest, st.Broken, st.Ready
	if st.Ready {
		r.owner.Store(&st.Owner)
	}
	return s, nil
}
