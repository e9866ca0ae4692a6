package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/processor"
)

// A misspelt variable is said, with what was meant; what Kubernetes adds is not.
func TestUnknownVariables(t *testing.T) {
	var s Settings
	s.use(pflag.NewFlagSet("", pflag.ContinueOnError), "http")
	got := s.strangers([]string{
		"HOME=/", "VIEWKEEPER_HTTP=:1", "VIEWKEEPER_MAX_STALE=1m", "VIEWKEEPER_CONFIG=x", "VIEWKEEPER_EMPTY=",
		"VIEWKEEPER_SERVICE_HOST=10.0.0.1", "VIEWKEEPER_SERVICE_PORT_HTTP=7410", "VIEWKEEPER_OWNER_SERVICE_PORT=7410",
		"VIEWKEEPER_PORT=tcp://10.0.0.1:7410", "VIEWKEEPER_PORT_7410_TCP_ADDR=10.0.0.1",
		"VIEWKEEPER_MAXSTALE=1m", "VIEWKEEPER_HTTP_PORT=7410", "VIEWKEEPER_max_stale=1m",
	})
	want := []string{"VIEWKEEPER_HTTP_PORT ", "VIEWKEEPER_MAXSTALE ", "VIEWKEEPER_max_stale "}
	if len(got) != len(want) {
		t.Fatalf("%q", got)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%q does not speak of %s", got[i], want[i])
		}
	}
	if !strings.Contains(got[1], "did you mean max-stale?") {
		t.Errorf("%q", got[1])
	}
}

// What a process that is an owner only says of itself.
func TestOwnerDoor(t *testing.T) {
	status := processor.Status{State: processor.StateStarting, Since: time.Now()}
	spec := ownerSpec{id: "owner-1", catalog: "c", metrics: newMetrics()}
	door := httptest.NewServer(ownerHandler(func() processor.Status { return status }, spec))
	defer door.Close()
	ask := func(path string, want int, parts ...string) {
		t.Helper()
		resp, err := http.Get(door.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body := new(strings.Builder)
		if err := resp.Write(body); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want {
			t.Errorf("%s is %d, want %d", path, resp.StatusCode, want)
		}
		for _, p := range parts {
			if !strings.Contains(body.String(), p) {
				t.Errorf("%s has no %s:\n%s", path, p, body)
			}
		}
	}
	ask("/livez", 200)
	ask("/readyz", 503, `"reasons":["STARTING"]`, `"state":"starting"`)
	status = processor.Status{State: processor.StateBlocked, Err: "x", Reasons: map[string]string{viewkeeper.ReasonTableBehind: "put it back with viewkeeper restore"}}
	ask("/livez", 200)
	ask("/readyz", 503, `"reasons":["TABLE_BEHIND"]`, "viewkeeper restore")
	ask("/v1/status", 200, `"ready_reasons":["TABLE_BEHIND"]`, `"degraded":[]`, `"state":"blocked"`, `"last_failure":"x"`, `"node":"owner-1"`)
	// What is wrong with an owner that works makes it degraded, not unready.
	status = processor.Status{State: processor.StateOwner, Epoch: 7, Version: 9, Reasons: map[string]string{viewkeeper.ReasonStatementsLost: "3 offsets"}}
	ask("/readyz", 200, `"reasons":[]`, `"degraded":["STATEMENTS_LOST"]`, "3 offsets")
	ask("/v1/status", 200, `"ready":true`, `"version":9`, `"epoch":7`)
	ask("/v1/nodes", 404, "application/problem+json", "ask a node")
	ask("/metrics", 200, "go_goroutines")
}

func TestStateOfANode(t *testing.T) {
	n := viewkeeper.NodeStatus{Status: viewkeeper.Status{Ready: true}}
	if s := stateOf(n); s != "ready" {
		t.Error(s)
	}
	n.Ready, n.ReadyReasons, n.StaleFor, n.Lagging, n.DigestDiffers, n.BaseDiffers, n.Broken = false, []string{"STALE"}, 301, true, true, true, 2
	n.Degraded = []string{"KAFKA_AWAY"}
	if s := stateOf(n); s != "not ready: STALE; lags; stale for 301 s; digest differs; base differs; 2 broken; degraded: KAFKA_AWAY" {
		t.Error(s)
	}
	now := time.Unix(1e9, 0)
	var got []string
	for _, d := range []time.Duration{0, 59 * time.Second, 90 * time.Minute, 100 * time.Hour, -time.Second} {
		got = append(got, ago(now.Add(-d), now))
	}
	if !slices.Equal(append(got, ago(time.Time{}, now)), []string{"0s", "59s", "1h30m", "4d", "", ""}) {
		t.Error(got)
	}
}
