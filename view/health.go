package view

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// health is what the node knows of its own state. It is guarded by Node.mu; assess
// makes reasons of it.
type health struct {
	// running says that goka's view has once been running, served that the node has
	// been ready: both are never taken back.
	running, served bool

	// copyServed says that the node began to serve with its copy of the table, copyErr
	// is the error of the last write of it.
	copyServed bool
	copyErr    error

	// contact is the last sign of life of the brokers, lastRecord the last record of
	// the table, heartbeat the last one of a living owner.
	contact, lastRecord, heartbeat time.Time

	// quietRestarts counts the views that were made anew because the table had more
	// than was read; a record resets it.
	quietRestarts int

	// down is since when no view follows; zero while one does.
	down      time.Time
	downErr   error
	downClass kafka.Class
	// upSince is since when a view runs that has yet to show that it may read, see
	// follows.
	upSince time.Time
	// pingErr is the error of the last look at the brokers.
	pingErr error

	// problems is what was wrong with the topics' settings at the last look.
	problems []kafka.Problem
	// begin is the table's first offset.
	begin int64
	// definitionsID is the id of the definitions topic now, "" if not known.
	definitionsID string
	// replaced is why the followed table is not the one that is served, since when.
	replaced      error
	replacedSince time.Time

	// buildErr is the error of the last build, if it failed for reasons of its own.
	buildErr error
	// changed is when the codes of the reasons last changed.
	changed time.Time
	// outside is what the process said, see SetDegraded.
	outside map[string]string
	// ownOwner is what is wrong with this process as an owner, see SetOwnReasons.
	ownOwner map[string]string
}

// follows notes that goka calls its view running. It says so before it has read
// anything where there is nothing new: a view that was not let read is believed only
// once it has read a record, or has lasted.
func (h *health) follows(now time.Time) {
	h.running = true
	if h.downClass.Kind == kafka.KindDenied {
		h.upSince = now
		return
	}
	h.down, h.downErr, h.contact = time.Time{}, nil, now
}

// reads notes that a record was read.
func (h *health) reads() {
	if !h.upSince.IsZero() {
		h.down, h.downErr, h.downClass, h.upSince = time.Time{}, nil, kafka.Class{}, time.Time{}
	}
}

// settle believes a view that has lasted for long enough.
func (h *health) settle(now time.Time, enough time.Duration) {
	if !h.upSince.IsZero() && now.Sub(h.upSince) > enough {
		h.reads()
	}
}

func (h *health) replace(err error, now time.Time) {
	if h.replaced == nil {
		h.replacedSince = now
	}
	h.replaced = err
}

// assessment is what follows from all that is known at one moment.
type assessment struct {
	ready    bool
	reasons  map[string]string // why not ready
	degraded map[string]string
	// theirs are the codes in degraded that only the owner has, as it says.
	theirs map[string]bool
	stale  time.Duration
}

// assess says whether the node is ready, and what is wrong with it.
func (n *Node) assess(now time.Time) assessment {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.assessLocked(now)
}

func (n *Node) assessLocked(now time.Time) assessment {
	h := &n.health
	a := assessment{reasons: map[string]string{}, degraded: map[string]string{}, theirs: map[string]bool{}}
	if !h.served {
		n.firstReasons(&a, now)
		n.commonFaults(&a, now)
		return a
	}
	a.ready = true
	if since := n.staleSince(now); !since.IsZero() {
		a.stale = max(now.Sub(since), 0)
	}
	switch {
	case h.replaced != nil:
		a.degraded[viewkeeper.ReasonTopicRecreated] = h.replaced.Error() + "; what was there before goes on being served"
	case !h.down.IsZero() && errors.As(h.downErr, new(*TruncatedError)): // topicFaults says it
	case !h.down.IsZero() && h.downClass.Kind == kafka.KindMissing:
		a.degraded[viewkeeper.ReasonTopicMissing] = h.downErr.Error()
	case h.denied() != nil:
		a.degraded[viewkeeper.ReasonKafkaDenied] = n.deniedText(h.denied()) + "; what was there goes on being served"
	case !h.down.IsZero() || h.pingErr != nil:
		served := "what was there goes on being served"
		if h.copyServed && !h.running {
			served = "what is served is this node's own copy of the table, since it started without them"
		}
		a.degraded[viewkeeper.ReasonKafkaAway] = fmt.Sprintf("the brokers %s have not answered for %s (%v); %s",
			strings.Join(n.cfg.Kafka.Brokers, ", "), now.Sub(h.contact).Round(time.Second/10), firstOf(h.downErr, h.pingErr), served)
	}
	if atEnd := n.noOwnerAtEnd(now); atEnd != "" {
		a.degraded[viewkeeper.ReasonNoOwnerAtEnd] = atEnd
	}
	n.topicFaults(a.degraded)
	if h.buildErr != nil {
		a.degraded[viewkeeper.ReasonBuildFailed] = "building version " + n.pending.version.String() + " failed, the last one is served: " + h.buildErr.Error()
	}
	if n.cfg.MaxStale > 0 && a.stale > n.cfg.MaxStale {
		a.ready = false
		a.reasons[viewkeeper.ReasonStale] = fmt.Sprintf("what is served is %s old, the limit is %s; it becomes ready again by itself",
			a.stale.Round(time.Second), n.cfg.MaxStale)
	}
	n.commonFaults(&a, now)
	return a
}

// denied is the error of a reader that the brokers keep out, or nil.
func (h *health) denied() error {
	for _, err := range []error{h.downErr, h.pingErr} {
		if err != nil && kafka.Classify(err).Kind == kafka.KindDenied {
			return err
		}
	}
	return nil
}

// deniedText says what a node needs, whole: who lost one right may lack others.
func (n *Node) deniedText(err error) string {
	t := n.topics
	read := strings.Join([]string{t.Definitions(), t.Table(), t.Decisions(), t.Nodes()}, " --topic ")
	text := fmt.Sprintf("the brokers do not let this process do what a node must (%v); give its user Read on the catalog's topics, as with kafka-acls --add --allow-principal User:NAME --operation Read --topic %s", err, read)
	if !n.cfg.ReadOnly {
		text += ", and Write on " + t.Nodes()
	}
	return text + "; it goes on by itself then"
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// staleSince is since when the factory lags what the owner has, as far as that can
// be known; zero when it does not.
func (n *Node) staleSince(now time.Time) time.Time {
	h := &n.health
	var since time.Time
	from := func(t time.Time) {
		if !t.IsZero() && (since.IsZero() || t.Before(since)) {
			since = t
		}
	}
	from(h.down) // brokers that answer do not help where no view follows
	if h.pingErr != nil || n.following.fold.Collecting() {
		from(h.contact)
	}
	if h.replaced != nil {
		from(h.replacedSince)
	}
	if !n.pending.empty() {
		from(n.pending.since)
	}
	from(n.building)
	return since
}

// firstReasons says why the node is not ready for the first time yet.
func (n *Node) firstReasons(a *assessment, now time.Time) {
	h := &n.health
	s := n.following
	table := n.topics.Table()
	switch {
	case h.downErr != nil && h.downClass.Kind == kafka.KindMissing:
		a.reasons[viewkeeper.ReasonTopicMissing] = h.downErr.Error()
	case h.downErr != nil && h.downClass.Kind == kafka.KindSettings:
		a.reasons[viewkeeper.ReasonTopicSettings] = h.downErr.Error()
	case h.begin > 0 && s.fold.Next() == 0:
		a.reasons[viewkeeper.ReasonTableTruncated] = (&TruncatedError{table, h.begin}).Error()
	case h.denied() != nil:
		a.reasons[viewkeeper.ReasonKafkaDenied] = n.deniedText(h.denied())
	case h.downErr != nil:
		a.reasons[viewkeeper.ReasonKafkaAway] = fmt.Sprintf("the brokers %s: %v", strings.Join(n.cfg.Kafka.Brokers, ", "), h.downErr)
	case !h.running && s.fold.Next() == 0:
		a.reasons[viewkeeper.ReasonStarting] = "nothing of the topic " + table + " has been read yet"
	}
	end, known := s.fold.End()
	f, _ := s.fold.Fence()
	switch atEnd := n.noOwnerAtEnd(now); {
	case len(a.reasons) > 0 && s.fold.Next() == 0:
	case atEnd != "":
		a.reasons[viewkeeper.ReasonNoOwnerAtEnd] = atEnd
	case s.fold.Collecting() || !h.running:
		a.reasons[viewkeeper.ReasonCatchingUp] = fmt.Sprintf("the topic %s is being read: at offset %d", table, s.fold.Next())
		if known {
			a.reasons[viewkeeper.ReasonCatchingUp] += fmt.Sprintf(" of %d", end)
		}
	case f == nil:
		a.reasons[viewkeeper.ReasonNoOwner] = "the topic " + table + " was never written by an owner, or was emptied; start an owner, and restore the catalog if there was one"
	case h.buildErr != nil:
		a.reasons[viewkeeper.ReasonBuildFailed] = "the first build failed and is tried again: " + h.buildErr.Error()
	case len(a.reasons) == 0:
		a.reasons[viewkeeper.ReasonBuilding] = fmt.Sprintf("version %d is being built for the first time", n.pending.version)
	}
	if fatal := kafka.FatalOnes(h.problems); len(fatal) > 0 && a.reasons[viewkeeper.ReasonTopicMissing] == "" {
		a.reasons[viewkeeper.ReasonTopicSettings] = (&kafka.ProblemsError{Problems: fatal}).Error()
	}
}

// noOwnerAtEnd says that the table's end can't be reached, or "": its last records
// are gone (transaction markers, a last segment that was lost), and nobody writes a
// new one.
func (n *Node) noOwnerAtEnd(now time.Time) string {
	f, h := n.following.fold, &n.health
	end, known := f.End()
	if !known || !h.running || !h.down.IsZero() || now.Sub(h.lastRecord) <= n.time.noOwner {
		return ""
	}
	return fmt.Sprintf("the topic %s ends at offset %d, the last record that can be read is at %d, and no owner writes a new one; start an owner",
		n.topics.Table(), end, f.Next()-1)
}

// topicFaults adds what is wrong with the topics of a node that serves.
func (n *Node) topicFaults(to map[string]string) {
	h := &n.health
	var missing, wrong []string
	for _, p := range h.problems {
		switch {
		case p.Missing:
			missing = append(missing, p.String())
		case p.Fatal:
			wrong = append(wrong, p.String())
		}
	}
	if missing != nil {
		to[viewkeeper.ReasonTopicMissing] = strings.Join(missing, "; ")
	}
	if wrong != nil {
		to[viewkeeper.ReasonTopicSettings] = strings.Join(wrong, "; ")
	}
	if h.begin > 0 {
		to[viewkeeper.ReasonTableTruncated] = (&TruncatedError{n.topics.Table(), h.begin}).Error()
	}
}

// commonFaults adds what is wrong whether the node serves or not, with the node or with
// an owner.
func (n *Node) commonFaults(a *assessment, now time.Time) {
	n.ownFaults(a, now)
	n.ownersFaults(a, now)
}

// ownFaults adds what is wrong whether the node serves or not.
func (n *Node) ownFaults(a *assessment, now time.Time) {
	h := &n.health
	var light []string
	for _, p := range h.problems {
		if !p.Fatal {
			light = append(light, p.String())
		}
	}
	if light != nil && a.degraded[viewkeeper.ReasonTopicSettings] == "" {
		a.degraded[viewkeeper.ReasonTopicSettings] = strings.Join(light, "; ")
	}
	maps.Copy(a.degraded, h.outside)
	n.partFaults(a, now)
	if h.copyErr != nil {
		a.degraded[viewkeeper.ReasonCopyFailed] = "this node's copy of the table is not written, so that it could not start without Kafka: " + h.copyErr.Error()
	}
	s := n.accepted
	if s == nil {
		return
	}
	own := n.cfg.Base.Engine().BaseDigest
	if owner, theirs := ownersBase(s); theirs != "" && theirs != own {
		a.degraded[viewkeeper.ReasonBaseDiffers] = fmt.Sprintf("this node's base is %s, the owner %s judges over %s; give all the same base", short(own), owner, short(theirs))
	}
	if h.down.IsZero() && h.pingErr == nil && h.replaced == nil && !s.fold.Collecting() && n.noOwner(now) {
		a.degraded[viewkeeper.ReasonNoOwner] = "no owner has said that it lives" + n.lastOwner(now) + "; statements are not decided until one does"
	}
	if c := s.fold.Commit(); c != nil && h.definitionsID != "" && c.DefinitionsTopic != "" && c.DefinitionsTopic != h.definitionsID {
		a.degraded[viewkeeper.ReasonTopicRecreated] = fmt.Sprintf("the topic %s was made anew: its id is %s, the catalog counts in %s; accept it with viewkeeper topics adopt",
			n.topics.Definitions(), h.definitionsID, c.DefinitionsTopic)
	}
	if s.damaged {
		a.degraded[viewkeeper.ReasonTableDamaged] = fmt.Sprintf("the definitions in the topic %s are not those that its commit row at version %d sums up: one is missing or is another; put them back with viewkeeper restore", n.topics.Table(), s.fold.Version())
	}
	if newer := s.fold.Newer(); len(newer) > 0 {
		a.degraded[viewkeeper.ReasonUnknownRecords] = fmt.Sprintf("%d records of the table, the first is %s, are of a newer format than this program's; they are served as far as they are known here; upgrade this node", len(newer), newer[0])
	}
	f := n.reg.Current()
	if failures := f.Failures(); len(failures) > 0 {
		a.degraded[viewkeeper.ReasonBroken] = fmt.Sprintf("%d of %d definitions do not build here, the first is %s: %s",
			len(failures), f.Len(), failures[0].Name, failures[0].Reason)
	}
	if n.fleet.isDouble(now) {
		a.degraded[viewkeeper.ReasonNodeIDTaken] = "another process says that it is the node " + n.cfg.NodeID + " of this catalog; give each node a --node-id of its own"
	}
	if differs := n.fleet.differs(n.cfg.NodeID, f.Version(), n.digestsLocked().rows, now); differs != "" {
		a.degraded[viewkeeper.ReasonDigestDiffers] = fmt.Sprintf("at version %d the node %s has other rows than this one", f.Version(), differs)
	}
}

// noOwner reports whether no owner has been seen for a while.
func (n *Node) noOwner(now time.Time) bool {
	return n.accepted == nil || now.Sub(n.ownerSeen()) > n.time.noOwner
}

// ownersFaults adds what is wrong with owners, and not with the node: the one in this
// process, one that may not own the catalog, the one that does.
func (n *Node) ownersFaults(a *assessment, now time.Time) {
	say := func(reasons map[string]string, who string) {
		for code, detail := range reasons {
			if _, ok := a.degraded[code]; !ok && a.reasons[code] == "" {
				a.degraded[code] = who + ": " + detail
				a.theirs[code] = true
			}
		}
	}
	say(n.health.ownOwner, "this process as an owner")
	if b := n.fleet.blockedOwner(now); b != nil && n.noOwner(now) {
		say(b.Reasons, "the process "+b.Node+", which is to own the catalog, says")
	}
	if n.accepted == nil {
		return
	}
	if hb := n.accepted.fold.Heartbeat(); hb != nil {
		say(hb.Reasons, "the owner "+hb.Owner+" says")
	}
}

// ownersBase is the digest of the base that the owner judges over, as far as it has
// said so.
func ownersBase(s *session) (owner, digest string) {
	if hb := s.fold.Heartbeat(); hb != nil {
		return hb.Owner, hb.BaseDigest
	}
	if c := s.fold.Commit(); c != nil {
		return c.Owner, c.BaseDigest
	}
	return "", ""
}

// ownerSeen is the last sign of an owner; until the first heartbeat has come, the
// time at which it was possible to see one.
func (n *Node) ownerSeen() time.Time {
	if n.health.heartbeat.IsZero() {
		return n.acceptedAt
	}
	return n.health.heartbeat
}

func (n *Node) lastOwner(now time.Time) string {
	hb := n.accepted.fold.Heartbeat()
	switch {
	case hb == nil:
		return ""
	case n.health.heartbeat.IsZero():
		return " since this node started; the last one was " + hb.Owner
	}
	return fmt.Sprintf(" for %s; the last one was %s", now.Sub(n.health.heartbeat).Round(time.Second), hb.Owner)
}

func short(digest string) string { return digest[:min(len(digest), 12)] }

func sortedKeys(m map[string]string) []string {
	keys := slices.Sorted(maps.Keys(m))
	if keys == nil {
		keys = []string{}
	}
	return keys
}

// digestsLocked gives the digests of the current factory. n.mu is held.
func (n *Node) digestsLocked() digests {
	if f := n.reg.Current(); n.digests.of != f {
		n.digests = digests{of: f, rows: f.Digest(), build: f.BuildDigest()}
	}
	return n.digests
}
