package view

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// fleet is what the nodes topic says of the other nodes. The last record of each
// counts; a node without a record younger than `live` is gone, and one that left
// with a tombstone at once.
//
// Ages are told by the broker's clock: records carry the time at which the broker
// took them, and the last of all tells what the broker's clock shows, since each
// node writes every few seconds. So neither a node whose clock is wrong, nor a start
// over a topic full of old records, makes a dead node live.
type fleet struct {
	self string
	live time.Duration
	// instance is what this run of this node calls itself in its records.
	instance string

	mu    sync.Mutex
	nodes map[string]*member
	// stamp is the highest time of a record, and received when it was read here.
	stamp, received time.Time
	// caughtUp says that a record was read that is this node's own of this run, or
	// that the end was reached: before, nothing is known of who lives.
	caughtUp bool
	// sawOwn says that a record of this run was read; double is when the broker last
	// took one of another run under this node's id after that. Before it they are
	// those of runs that are over.
	sawOwn bool
	double time.Time
	// highs are the versions that were the highest, each with the time at which it
	// became so: the first is older than `live`, which is also how long a node may be
	// behind before it lags.
	highs   []high
	changed signal
	// blocked is what the last process said that may not own the catalog, and when the
	// broker took it.
	blocked      *viewkeeper.Blocked
	blockedStamp time.Time
}

// blockedFor is how long a process counts as blocked after it said so. It says it again
// each time that it tries, which is every few seconds.
const blockedFor = 30 * time.Second

// blockedOwner gives the process that is blocked from owning the catalog now, or nil.
func (f *fleet) blockedOwner(now time.Time) *viewkeeper.Blocked {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.blocked == nil || f.stamp.Add(now.Sub(f.received)).Sub(f.blockedStamp) > blockedFor {
		return nil
	}
	return f.blocked
}

// high is a version that became the highest that is known.
type high struct {
	version viewkeeper.Version
	at      time.Time
}

// member is the last record of a node. All of its status is decoded when somebody asks
// for it: of a hundred nodes each reads what all others say several times a second.
type member struct {
	said  said
	raw   []byte
	stamp time.Time
	full  *viewkeeper.Status // nil until it was asked for
}

// said is what each node wants to know of each other's status at once.
type said struct {
	Node     string             `json:"node"`
	Version  viewkeeper.Version `json:"version"`
	Digest   string             `json:"digest"`
	Instance string             `json:"instance"`
}

// status is all that the record says; false when it is no status.
func (m *member) status() (viewkeeper.Status, bool) {
	if m.full == nil {
		var s viewkeeper.Status
		if json.Unmarshal(m.raw, &s) != nil {
			return s, false
		}
		m.full, m.raw = &s, nil
	}
	return *m.full, true
}

func newFleet(self string, live time.Duration) *fleet {
	return &fleet{self: self, live: live, instance: rand.Text(), nodes: map[string]*member{}}
}

// read takes one record of the nodes topic.
func (f *fleet) read(key string, value []byte, stamp, now time.Time) {
	f.mu.Lock()
	defer f.changed.fire()
	defer f.mu.Unlock()
	if !stamp.Before(f.stamp) {
		f.stamp, f.received = stamp, now
	}
	if key == viewkeeper.BlockedKey {
		var b viewkeeper.Blocked
		if f.blocked = nil; json.Unmarshal(value, &b) == nil && b.Node != "" && len(b.Reasons) > 0 {
			f.blocked, f.blockedStamp = &b, stamp
		}
		return
	}
	if len(value) == 0 {
		delete(f.nodes, key)
		return
	}
	var s said
	if json.Unmarshal(value, &s) != nil || key == "" || s.Node != key {
		return // not a node's; nothing that it says can be used
	}
	f.nodes[key] = &member{said: s, raw: bytes.Clone(value), stamp: stamp}
	switch {
	case key != f.self:
	case s.Instance == f.instance:
		f.sawOwn = true
	case f.sawOwn && s.Instance != "":
		f.double = stamp
	}
}

// highest takes the highest version that is known now, of the table or of a live node,
// and gives the one that was known a while ago.
func (f *fleet) highest(v viewkeeper.Version, now time.Time) (before viewkeeper.Version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// Who claimed a higher one and is gone was not right.
	for len(f.highs) > 0 && f.highs[len(f.highs)-1].version > v {
		f.highs = f.highs[:len(f.highs)-1]
	}
	if n := len(f.highs); n == 0 || f.highs[n-1].version < v {
		// One in a tenth is enough, else a busy catalog's would be many.
		if n > 1 && now.Sub(f.highs[n-2].at) < f.live/10 {
			f.highs = f.highs[:n-1]
		}
		f.highs = append(f.highs, high{v, now})
	}
	for len(f.highs) > 1 && now.Sub(f.highs[1].at) >= f.live {
		f.highs = f.highs[1:]
	}
	if h := f.highs[0]; now.Sub(h.at) >= f.live {
		return h.version
	}
	return 0
}

// isDouble reports whether another process writes under this node's id. A process
// that is being replaced writes its last words while the next one starts: that
// passes.
func (f *fleet) isDouble(now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.double.IsZero() && f.stamp.Add(now.Sub(f.received)).Sub(f.double) < f.live
}

func (f *fleet) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes, f.caughtUp = map[string]*member{}, false
	f.stamp, f.received = time.Time{}, time.Time{}
	f.sawOwn, f.double = false, time.Time{}
	f.blocked = nil
}

func (f *fleet) setCaughtUp() {
	f.mu.Lock()
	f.caughtUp = true
	f.mu.Unlock()
	f.changed.fire()
}

// living gives the live nodes, in no order. f.mu is held.
func (f *fleet) living(now time.Time) iter.Seq2[string, *member] {
	broker := f.stamp.Add(now.Sub(f.received))
	return func(yield func(string, *member) bool) {
		for name, m := range f.nodes {
			if broker.Sub(m.stamp) < f.live && !yield(name, m) {
				return
			}
		}
	}
}

// members gives the live nodes, sorted, and whether that is known yet.
func (f *fleet) members(now time.Time) ([]viewkeeper.Status, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := []viewkeeper.Status{}
	for _, m := range f.living(now) {
		if s, ok := m.status(); ok {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b viewkeeper.Status) int { return cmp.Compare(a.Node, b.Node) })
	return out, f.caughtUp
}

// size is the number of live nodes, and top the highest version that one of them has.
func (f *fleet) size(now time.Time) (size int, top viewkeeper.Version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.living(now) {
		size++
		top = max(top, m.said.Version)
	}
	return size, top
}

// having gives the live nodes that have a version and those that have not, sorted, and
// whether that is known yet.
func (f *fleet) having(v viewkeeper.Version, now time.Time) (reached, missing []string, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reached, missing = []string{}, []string{}
	for name, m := range f.living(now) {
		if m.said.Version >= v {
			reached = append(reached, name)
		} else {
			missing = append(missing, name)
		}
	}
	slices.Sort(reached)
	slices.Sort(missing)
	return reached, missing, f.caughtUp
}

// differs names a live node that has other rows at the same version, or "".
func (f *fleet) differs(self string, v viewkeeper.Version, digest string, now time.Time) (first string) {
	if v == 0 {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, m := range f.living(now) {
		s := &m.said
		if name != self && s.Version == v && s.Digest != "" && s.Digest != digest && (first == "" || name < first) {
			first = name
		}
	}
	return first
}

// A fleet's records are written by each node and read by each: what that costs grows with
// the square of their number. So nodes of a large one say less often what they have, and
// let what others say gather.
const (
	// smallFleet is the number of nodes up to which each says at once what it has, at most
	// every publishMin, and reads at once what the others say.
	smallFleet = 25
	// gatherFor is how long, for each live node of a larger fleet, records gather.
	gatherFor = 2 * time.Millisecond
)

// publishPause is the least time between two records of a node: of a larger fleet all
// nodes together write no more than those of a small one.
func (f *fleet) publishPause(least time.Duration, now time.Time) time.Duration {
	size, _ := f.size(now)
	return least * time.Duration(max(size, smallFleet)) / smallFleet
}

// gather is how long records of the nodes topic gather before they are read.
func (f *fleet) gather(now time.Time) time.Duration {
	if size, _ := f.size(now); size > smallFleet {
		return min(time.Duration(size)*gatherFor, kafka.MostGather)
	}
	return 0
}

// Nodes is the status of every live node, sorted by name and compared with the rest,
// and a channel that is closed when that list may have changed. The node itself is in it
// as it is now, also while Kafka is away and nothing is known of the others; one that
// writes nothing to Kafka is not.
func (n *Node) Nodes() ([]viewkeeper.NodeStatus, <-chan struct{}) {
	now := time.Now()
	c := n.fleet.changed.C()
	all, _ := n.fleet.members(now)
	if !n.cfg.ReadOnly {
		own := n.Status()
		at, there := slices.BinarySearchFunc(all, own.Node, func(s viewkeeper.Status, name string) int { return cmp.Compare(s.Node, name) })
		if !there {
			all = slices.Insert(all, at, own)
		}
		all[at] = own
	}
	return viewkeeper.CompareNodes(all, n.fleetView(now)), c
}

// fleetView is what nodes are compared with. Whoever calls it regularly keeps what was
// known when.
func (n *Node) fleetView(now time.Time) (known viewkeeper.FleetView) {
	known.Version = n.reg.Current().Version()
	n.mu.Lock()
	if s := n.accepted; s != nil {
		known.Version = max(known.Version, s.fold.Version())
		_, known.BaseDigest = ownersBase(s)
	}
	n.mu.Unlock()
	_, top := n.fleet.size(now)
	known.Version = max(known.Version, top)
	known.Before = n.fleet.highest(known.Version, now)
	return known
}

// WaitFleet waits until every live node has a version. It returns the nodes that
// have it and those that have not; there are none of the latter without an error. A
// node that leaves during the wait stops counting, one that comes counts. The error
// is the context's.
func (n *Node) WaitFleet(ctx context.Context, v viewkeeper.Version) (reached, missing []string, err error) {
	tick := time.NewTicker(n.time.tick) // nodes that fall silent make no event
	defer tick.Stop()
	for {
		c := n.fleet.changed.C()
		var known bool
		reached, missing, known = n.fleet.having(v, time.Now())
		if known && len(missing) == 0 && (len(reached) > 0 || n.cfg.ReadOnly) {
			return reached, missing, nil
		}
		select {
		case <-c:
		case <-tick.C:
		case <-ctx.Done():
			return reached, missing, ctx.Err()
		}
	}
}

// followFleet reads the nodes topic from its beginning until something fails.
func (n *Node) followFleet(ctx context.Context) error {
	var end int64
	err := n.brokers.ask(ctx, func(a *kafka.Admin) (err error) {
		end, err = a.ReadableEnd(ctx, n.topics.Nodes())
		return err
	})
	if err != nil {
		return err
	}
	n.fleet.reset()
	if end == 0 {
		n.fleet.setCaughtUp()
	}
	gather := func() time.Duration { return n.fleet.gather(time.Now()) }
	return n.tail(ctx, &n.parts.nodes, kafka.FromOldest, gather, func(m *sarama.ConsumerMessage) error {
		n.fleet.read(string(m.Key), m.Value, m.Timestamp, time.Now())
		if m.Offset >= end-1 {
			n.fleet.setCaughtUp()
		}
		return nil
	})
}
