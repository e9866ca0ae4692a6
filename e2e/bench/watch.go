package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// served says that a node serves a version since a time.
type served struct {
	node    int
	version viewkeeper.Version
	at      time.Time
}

// watch follows a node's GET /v1/watch until ctx ends. Each event is one version that
// the node serves; it is the least that a client can do to learn of it.
func watch(ctx context.Context, p *Proc, node int, opened func(), out chan<- served) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.HTTP+"/v1/watch", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: /v1/watch answers %s", p.Name, resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	for first := true; lines.Scan(); first = false {
		if first {
			opened()
		}
		id, ok := strings.CutPrefix(lines.Text(), "id: ")
		if !ok {
			continue
		}
		now := time.Now()
		version, err := strconv.ParseUint(id, 10, 63)
		if err != nil {
			return err
		}
		select {
		case out <- served{node, viewkeeper.Version(version), now}:
		case <-ctx.Done():
			return nil
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("%s: the watch ended: %w", p.Name, lines.Err())
}
