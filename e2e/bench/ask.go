package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	asArrow = "application/vnd.apache.arrow.stream"
	asJSON  = "application/json"
)

// ask sends a node a query and gives the answer's body, which the caller closes.
func (p *Proc) ask(ctx context.Context, format, sql string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.HTTP+"/v1/query", strings.NewReader(sql))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", format)
	req.Header.Set("Content-Type", "application/sql")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		resp.Body.Close()
		return nil, fmt.Errorf("%s: a query is answered with %s: %s", p.Name, resp.Status, text)
	}
	return resp.Body, nil
}

// timed asks and reads the answer to its end.
func (p *Proc) timed(ctx context.Context, format, sql string) (time.Duration, error) {
	began := time.Now()
	body, err := p.ask(ctx, format, sql)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	if _, err := io.Copy(io.Discard, body); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}
