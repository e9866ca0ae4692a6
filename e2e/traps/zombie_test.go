package traps

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
	"github.com/viewkeeper/viewkeeper/internal/kafkaproxy"
)

// moment says whether a request of the owner is the one at which it is stopped.
type moment func(w *world, r kafkaproxy.Request) bool

// wrote is a request with a record of the table whose key begins so.
func wrote(prefix string) moment {
	return func(w *world, r kafkaproxy.Request) bool {
		for _, rec := range r.Records() {
			if rec.Topic == w.topics.Table() && strings.HasPrefix(string(rec.Key), prefix) {
				return true
			}
		}
		return false
	}
}

// flight is what follows a commit row: rows, ids and decisions, in one request to a
// broker that leads both topics.
func flight(w *world, r kafkaproxy.Request) bool {
	if r.Key != int16(kmsg.Produce) || wrote(codec.KeyCommit)(w, r) {
		return false
	}
	for _, rec := range r.Records() {
		if rec.Topic == w.topics.Decisions() {
			return true
		}
	}
	return false
}

func offsetCommit(_ *world, r kafkaproxy.Request) bool { return r.Key == int16(kmsg.OffsetCommit) }

// zombieStep is a moment of an owner's life at which it is stopped.
type zombieStep struct {
	name string
	at   moment
	// held says that the request itself comes late too: it is let go when the process
	// wakes up. Otherwise it is carried out, and its answer waits in a socket.
	held bool
	// begin brings the owner to that moment; nil is statements of its own.
	begin func(z *zombie)
}

// zombie is the story of one owner that is stopped.
type zombie struct {
	*world
	step    zombieStep
	proxy   *kafkaproxy.Proxy
	stopped chan struct{}
	once    sync.Once

	mu    sync.Mutex
	armed bool
	owner *fleet.Proc
}

// arm has the owner stopped at its step from now on.
func (z *zombie) arm() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.armed = true
}

func (z *zombie) intercept(r kafkaproxy.Request) kafkaproxy.Action {
	z.mu.Lock()
	armed, p := z.armed, z.owner
	z.mu.Unlock()
	if !armed || !z.step.at(z.world, r) {
		return kafkaproxy.Pass
	}
	act := kafkaproxy.Pass
	z.once.Do(func() {
		p.Signal(syscall.SIGSTOP)
		if z.step.held {
			act = kafkaproxy.Hold
		}
		close(z.stopped)
	})
	return act
}

// start starts the owner that is to be stopped.
func (z *zombie) start() {
	z.mu.Lock() // its requests wait until it is known
	defer z.mu.Unlock()
	z.owner = z.via(z.proxy, "zombie", "owner")
}

// ordinary has the zombie own the catalog, and stops it over statements of its own.
func ordinary(z *zombie) {
	z.start()
	z.before()
	z.arm()
	z.batch()
}

// before is what was decided before anything happens.
func (z *zombie) before() {
	z.emit("accepted", "CREATE VIEW v AS SELECT a FROM t")
	z.emit("accepted", "CREATE VIEW w AS SELECT a FROM v")
	z.emit("refused BIND", "CREATE VIEW x AS SELECT nothing FROM v")
	z.decided(z.Procs["n"])
}

// batch is what is under way when the owner is stopped.
func (z *zombie) batch() {
	z.emit("accepted", "CREATE OR REPLACE VIEW v AS SELECT a + 10 AS a FROM t")
	z.emit("accepted", "BEGIN; CREATE VIEW y AS SELECT a FROM w; COMMENT ON VIEW w IS 'of the zombie'; COMMIT")
	z.emit("refused BIND", "CREATE VIEW x AS SELECT still_nothing FROM v")
	z.emit("accepted", "DROP VIEW y")
}

// after is what the new owner decides about the same names.
func (z *zombie) after() {
	z.emit("accepted", "CREATE OR REPLACE VIEW v AS SELECT a + 20 AS a FROM t")
	z.emit("accepted", "CREATE VIEW x AS SELECT a FROM w")
	z.emit("refused BIND", "CREATE VIEW u AS SELECT a FROM y")
	z.emit("accepted", "CREATE VIEW y AS SELECT a + 1 AS a FROM x")
	z.decided(z.Procs["n"])
}

func zombieSteps() []zombieStep {
	atStart := func(z *zombie) {
		first := z.Launch("first", "owner")
		z.before()
		first.Stop()
		z.arm()
		z.start()
	}
	// Another owner dies between a commit row and its rows, and the zombie completes.
	completing := func(z *zombie) {
		p := z.world.proxy()
		died := make(chan struct{})
		var first *fleet.Proc
		var once sync.Once
		launched := make(chan struct{})
		armed := make(chan struct{})
		p.Intercept(func(r kafkaproxy.Request) kafkaproxy.Action {
			select {
			case <-armed:
			default:
				return kafkaproxy.Pass
			}
			if !flight(z.world, r) {
				return kafkaproxy.Pass
			}
			once.Do(func() {
				<-launched
				first.Signal(syscall.SIGKILL)
				close(died)
			})
			return kafkaproxy.Refuse
		})
		first = z.via(p, "first", "owner")
		close(launched)
		z.before()
		close(armed)
		z.batch()
		z.wait("the death of the first owner", died)
		first.Kill()
		z.arm()
		z.start()
	}
	// A stranger's tombstone lies over a row, and the zombie heals it.
	healing := func(z *zombie) {
		z.start()
		z.before()
		z.arm()
		z.write(&sarama.ProducerMessage{Topic: z.topics.Table(), Key: sarama.StringEncoder("main.v")})
	}
	return []zombieStep{
		{"before the fence", wrote("#fence/"), true, atStart},
		{"after the fence", wrote("#fence/"), false, atStart},
		{"at completion", wrote("main."), true, completing},
		{"after completion", wrote("main."), false, completing},
		{"before the commit row", wrote(codec.KeyCommit), true, nil},
		{"after the commit row", wrote(codec.KeyCommit), false, nil},
		{"before rows and decisions", flight, true, nil},
		{"after rows and decisions", flight, false, nil},
		{"before the offset commit", offsetCommit, true, nil},
		{"at healing", wrote("main.v"), true, healing},
	}
}

// An owner is stopped past its session at each step of its work, another one takes over,
// and the first one wakes up and goes on where it was.
func TestZombieOwner(t *testing.T) {
	t.Parallel()
	for _, step := range zombieSteps() {
		t.Run(step.name, func(t *testing.T) {
			t.Parallel()
			z := stopOwner(t, step)
			n := z.Procs["n"]
			z.Launch("other", "owner")
			z.world.owner(n, "zombie", "first", "")
			z.after()
			before := n.Status()
			seen := z.late()

			z.owner.Signal(syscall.SIGCONT)
			z.proxy.Heal()
			z.awake(seen)
			if s := n.Status(); s.Version == before.Version && s.Digest != before.Digest {
				t.Errorf("the late records changed the node: %+v, and before %+v", s, before)
			}
			// Whoever is the owner now goes on.
			z.emit("accepted", "CREATE OR REPLACE VIEW u AS SELECT max(a) AS a FROM y")
			z.end()
		})
	}
}

// The new owner dies before it has healed: what the zombie wrote late lies there until
// a third one comes and heals. Compaction takes the rest then, and a new node sees no more.
func TestZombieAndItsHealerDies(t *testing.T) {
	t.Parallel()
	for _, step := range zombieSteps() {
		if !step.held || step.name == "before the fence" || step.name == "before the offset commit" {
			continue // what comes late needs no healing
		}
		t.Run(step.name, func(t *testing.T) {
			t.Parallel()
			z := stopOwner(t, step)
			n := z.Procs["n"]
			other := z.Launch("other", "owner")
			z.world.owner(n, "zombie", "first", "")
			z.after()
			other.Kill()
			before := n.Status()
			seen := z.late()

			// The late write is under way when its writer dies too.
			z.owner.Kill()
			z.proxy.Heal()
			fleet.Eventually(t, "the late write", func() error {
				return z.more(seen)
			})
			if s := n.Status(); s.Version != before.Version || s.Digest != before.Digest {
				t.Errorf("the late records changed the node: %+v, and before %+v", s, before)
			}
			z.Serve("early", "node").WantRows("SELECT max(a) FROM v", before.Version, "22")
			z.Launch("third", "owner")
			z.emit("accepted", "CREATE OR REPLACE VIEW u AS SELECT max(a) AS a FROM y")
			z.decided(n)
			z.verify(n)
			z.compact()
			z.end()
		})
	}
}

// stopOwner brings an owner to a step and stops it there.
func stopOwner(t *testing.T, step zombieStep) *zombie {
	t.Helper()
	z := &zombie{world: newWorld(t), step: step, stopped: make(chan struct{})}
	z.proxy = z.world.proxy()
	z.proxy.Intercept(z.intercept)
	z.Launch("n", "node")
	if step.begin == nil {
		ordinary(z)
	} else {
		step.begin(z)
	}
	z.wait("the moment to stop at", z.stopped)
	return z
}

func (z *zombie) wait(what string, c <-chan struct{}) {
	z.t.Helper()
	select {
	case <-c:
	case <-time.After(fleet.Patience):
		z.t.Fatalf("%s never came", what)
	}
}

// arrived is how much has come too late, or may have.
type arrived struct{ stale, decisions int64 }

func (z *zombie) late() arrived {
	z.t.Helper()
	end, err := z.admin.EndOffset(z.ctx, z.topics.Decisions())
	z.must(err)
	return arrived{z.table().Counts().Stale, end}
}

// more is nil when more has come than there was, by a zombie whose statements nobody
// else is deciding now.
func (z *zombie) more(was arrived) error {
	if now := z.late(); now == was {
		return fmt.Errorf("nothing came: %+v", now)
	}
	return nil
}

// awake waits until the zombie has noticed that it is none any more.
func (z *zombie) awake(seen arrived) {
	z.t.Helper()
	fleet.Eventually(z.t, "the zombie finds out", func() error {
		log, err := os.ReadFile(z.owner.Log)
		if err != nil {
			return err
		}
		for _, sign := range []string{"will be started again", "joining again", "standing by"} {
			if strings.Contains(string(log), sign) {
				return nil
			}
		}
		return fmt.Errorf("nothing of it in its log")
	})
	if z.step.held && z.step.name != "before the fence" && z.step.name != "before the offset commit" {
		fleet.Eventually(z.t, "its late records", func() error { return z.more(seen) })
	}
}

// end verifies the story, on the node that saw all of it and on one that is new.
func (z *zombie) end() {
	z.t.Helper()
	n := z.Procs["n"]
	z.decided(n)
	fresh := z.Serve("fresh", "node")
	for _, p := range []*fleet.Proc{n, fresh} {
		z.decided(p)
		p.WantRows("SELECT max(a) FROM v", z.last(), "22")
		p.WantRows("SELECT a FROM u", z.last(), "23")
	}
	z.verify(n, fresh)
}
