package broker

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Options says where the broker listens and keeps its data.
type Options struct {
	// Dir is the data directory; it is made when missing. "" keeps all in memory.
	Dir string
	// Addr is host:port. An empty host is 127.0.0.1, port 0 a free one.
	Addr string
	// Log gets the broker's own messages; nil drops them.
	Log *slog.Logger
	// Extra are further options of kfake, for tests that want faults or more brokers.
	Extra []kfake.Opt
}

// Broker is a running broker.
type Broker struct {
	cluster *kfake.Cluster
	addr    string
	unlock  func() error
}

// compactEvery is the time between two compactions, see the package comment.
const compactEvery = 6 * time.Hour

// addressPatience is how long Start waits for an address that is still held, as
// right after the last broker was killed.
const addressPatience = 5 * time.Second

// Start runs a broker on addr with its data in dir. See [Options].
func Start(ctx context.Context, dir, addr string) (*Broker, error) {
	return StartWith(ctx, Options{Dir: dir, Addr: addr})
}

// StartWith runs a broker. It returns when the broker takes connections. Two
// brokers never share a directory: the second one is refused.
func StartWith(ctx context.Context, o Options) (*Broker, error) {
	host, port, err := splitAddr(o.Addr)
	if err != nil {
		return nil, err
	}
	unlock := func() error { return nil }
	opts := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ClusterID(newClusterID()), // of a new directory; an old one keeps its own
		kfake.DefaultNumPartitions(1),
		kfake.BrokerConfigs(map[string]string{"log.cleaner.backoff.ms": strconv.FormatInt(compactEvery.Milliseconds(), 10)}),
		kfake.WithLogger(logger{o.Log}),
		kfake.ListenFn(func(network, _ string) (net.Listener, error) {
			return listen(ctx, network, net.JoinHostPort(host, port))
		}),
	}
	if o.Dir != "" {
		if err := os.MkdirAll(o.Dir, 0o755); err != nil {
			return nil, fmt.Errorf("making the broker's data directory: %w", err)
		}
		if unlock, err = lockDir(o.Dir); err != nil {
			return nil, err
		}
		opts = append(opts, kfake.DataDir(filepath.Join(o.Dir, "data")), kfake.SyncWrites())
	}
	cluster, err := kfake.NewCluster(append(opts, o.Extra...)...)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the embedded broker on %s: %w", net.JoinHostPort(host, port), err), unlock())
	}
	return &Broker{cluster: cluster, addr: cluster.ListenAddrs()[0], unlock: unlock}, nil
}

func splitAddr(addr string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(addr)
	if err != nil {
		return "", "", fmt.Errorf("the broker's address %q is not host:port: %w", addr, err)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		return "", "", fmt.Errorf("the broker's address %q has no host that a client could be told; name one, for example 127.0.0.1", addr)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return host, port, nil
}

func listen(ctx context.Context, network, addr string) (net.Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, addressPatience)
	defer cancel()
	for {
		var lc net.ListenConfig
		ln, err := lc.Listen(ctx, network, addr)
		if err == nil {
			return ln, nil
		}
		t := time.NewTimer(50 * time.Millisecond)
		select {
		case <-ctx.Done():
			t.Stop()
			return nil, err
		case <-t.C:
		}
	}
}

func newClusterID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Addr is host:port to give to clients.
func (b *Broker) Addr() string { return b.addr }

// Cluster is the fake itself, for tests: faults, compaction on demand, topics made
// anew.
func (b *Broker) Cluster() *kfake.Cluster { return b.cluster }

// Close stops the broker and writes all that it has to its directory. A second
// call does nothing.
func (b *Broker) Close() error {
	if b.cluster == nil {
		return nil
	}
	b.cluster.Close()
	b.cluster = nil
	return b.unlock()
}

type logger struct{ log *slog.Logger }

func (l logger) Logf(level kfake.LogLevel, format string, args ...any) {
	if l.log == nil {
		return
	}
	at := slog.LevelDebug
	switch level {
	case kfake.LogLevelError:
		at = slog.LevelError
	case kfake.LogLevelWarn:
		at = slog.LevelWarn
	}
	l.log.Log(context.Background(), at, fmt.Sprintf(format, args...), "from", "broker")
}
