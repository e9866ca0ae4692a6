package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// p5Producers is how many producers issue statements together.
const p5Producers = 64

// p5 measures how many statements about one definition an owner accepts in a second
// with all definitions loaded: 64 producers, each with a connection and definitions of
// its own, send one statement after the other and wait for its decision. Beside it the
// judge alone, which the rest of the owner should not hold up, and how long a statement
// takes that comes alone.
func p5(ctx context.Context, env *Env) (_ []Figure, err error) {
	alone, err := judgeRate(ctx, env.N, time.Duration(env.pick(3, 8))*time.Second)
	if err != nil {
		return nil, fmt.Errorf("the judge's own rate: %w", err)
	}
	c, err := env.Loaded(ctx, env.N)
	if err != nil {
		return nil, err
	}
	owner, err := c.Serve(ctx, "owner", "owner")
	if err != nil {
		return nil, err
	}
	defer owner.Stop()
	d, err := c.Verdicts(ctx)
	if err != nil {
		return nil, err
	}
	defer d.Stop()
	told, err := c.Told(ctx)
	if err != nil {
		return nil, err
	}
	defer told.Stop()
	defer func() { err = errors.Join(err, p5Leave(ctx, c, d)) }()
	hop, err := env.NewHop(ctx)
	if err != nil {
		return nil, err
	}
	defer hop.Close()

	var one, records, hops durations
	last, err := newProducer(c, d, 0)
	if err != nil {
		return nil, err
	}
	defer last.emitter.Close()
	last.told = told
	for i := range 20 + env.pick(150, 600) {
		took, err := last.issue(ctx)
		if err != nil {
			return nil, err
		}
		h, err := hop.Take(ctx)
		if err != nil {
			return nil, err
		}
		if i >= 20 {
			one, records, hops = append(one, last.toldAfter), append(records, took), append(hops, h)
		}
	}
	told.Stop()
	rate, took, err := together(ctx, c, d, time.Duration(env.pick(2, 4))*time.Second, time.Duration(env.pick(4, 15))*time.Second)
	if err != nil {
		return nil, err
	}
	note := fmt.Sprintf("with %d producers a statement takes p50 %.1f ms, p99 %.1f ms from its emission to its decision record; alone its decision is known on a node p99 %.2f ms, its decision record p50 %.2f ms, p99 %.2f ms; the bare hop p99 %.2f ms",
		p5Producers, took.at(.5), took.at(.99), one.at(.99), records.at(.5), records.at(.99), hops.at(.99))
	what := fmt.Sprintf("statements accepted a second, %d producers", p5Producers)
	return []Figure{
		{ID: "P5", What: what, Got: rate, Unit: "/s", Limit: 1200, AtLeast: true, Target: "≥ 1200/s", Note: note},
		{ID: "P5", What: what, Got: rate, Baseline: alone, Unit: "/s", Against: "the judge alone", Limit: .9 * alone, AtLeast: true, Target: "≥ 0.9 × the judge"},
		{ID: "P5", What: "emit to decision known on a node, one producer, p50", Got: one.at(.5), Baseline: hops.at(.5), Unit: "ms", Against: "bare hop, p50", Limit: 2.5, Target: "≤ 2.5 ms"},
	}, nil
}

// p5Statement is a statement of a producer: another text each time for one of a few
// definitions of its own.
func p5Statement(producer, i int) (name, sql string) {
	name = fmt.Sprintf("large.p5_%d_%d", producer, i%4)
	return name, fmt.Sprintf(`CREATE OR REPLACE VIEW %s AS
SELECT id, region, day, amount * %d AS amount, quantity::BIGINT AS n, status, price, customer_id, place.city AS city
FROM orders
WHERE active AND amount > %d AND status IN ('open', 'paid', 'sent')`, name, i+1, i)
}

// together has all producers at work, and gives how many statements were accepted in a
// second after a while, and how long each took.
func together(ctx context.Context, c *Catalog, d *Verdicts, warm, during time.Duration) (rate float64, took durations, err error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	var errs []error
	measuring := false
	var group sync.WaitGroup
	for i := range p5Producers {
		p, err := newProducer(c, d, i+1)
		if err != nil {
			stop()
			group.Wait()
			return 0, nil, err
		}
		group.Go(func() {
			defer p.emitter.Close()
			for working.Err() == nil {
				// The last one of each is not cut off: what is under way is decided.
				t, err := p.issue(ctx)
				mu.Lock()
				switch {
				case err != nil:
					errs = append(errs, err)
					stop()
				case measuring:
					took = append(took, t)
				}
				mu.Unlock()
			}
		})
	}
	wait := func(t time.Duration) {
		select {
		case <-time.After(t):
		case <-working.Done():
		}
	}
	wait(warm)
	mu.Lock()
	measuring = true
	mu.Unlock()
	began := time.Now()
	wait(during)
	mu.Lock()
	measuring = false
	mu.Unlock()
	rate = float64(len(took)) / time.Since(began).Seconds()
	stop()
	group.Wait()
	return rate, took, errors.Join(errs...)
}

// producer issues statements one after the other.
type producer struct {
	number, count int
	emitter       *kafka.Emitter
	decided       *Verdicts
	// told, if there is one, sees what nodes see, which toldAfter says of the last statement.
	told      *Verdicts
	toldAfter time.Duration
}

func newProducer(c *Catalog, d *Verdicts, number int) (*producer, error) {
	emitter, err := c.Emitter()
	return &producer{number: number, emitter: emitter, decided: d}, err
}

// issue sends the next statement and waits until it is accepted. It gives the time from
// its emission to its decision record.
func (p *producer) issue(ctx context.Context) (time.Duration, error) {
	name, sql := p5Statement(p.number, p.count)
	p.count++
	id := fmt.Sprintf("p5-%d-%d-%d", p.number, p.count, time.Now().UnixNano())
	decided := p.decided.Expect(id)
	var told <-chan verdict
	if p.told != nil {
		told = p.told.Expect(id)
	}
	began := time.Now()
	if _, err := p.emitter.Emit(ctx, viewkeeper.Submission{Key: name, SQL: sql, ID: id}); err != nil {
		return 0, err
	}
	select {
	case v := <-decided:
		if !v.accepted {
			return 0, fmt.Errorf("a statement was not accepted: %s", v.value)
		}
		if told != nil {
			select {
			case first := <-told:
				p.toldAfter = first.at.Sub(began)
			case <-p.told.done:
				return 0, p.told.err
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		return v.at.Sub(began), nil
	case <-p.decided.done:
		return 0, p.decided.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// p5Leave drops what the producers made.
func p5Leave(ctx context.Context, c *Catalog, d *Verdicts) error {
	var b strings.Builder
	b.WriteString("BEGIN;\n")
	for p := range p5Producers + 1 {
		for i := range 4 {
			name, _ := p5Statement(p, i)
			fmt.Fprintf(&b, "DROP VIEW IF EXISTS %s;\n", name)
		}
	}
	b.WriteString("COMMIT;")
	emitter, err := c.Emitter()
	if err != nil {
		return err
	}
	defer emitter.Close()
	id := fmt.Sprintf("p5-leave-%d", time.Now().UnixNano())
	decided := d.Expect(id)
	if _, err := emitter.Emit(ctx, viewkeeper.Submission{Key: "p5", SQL: b.String(), ID: id}); err != nil {
		return err
	}
	select {
	case v := <-decided:
		if !v.accepted {
			return fmt.Errorf("what P5 made was not dropped: %s", v.value)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Verdicts follows a catalog's decisions topic as cheaply as can be: it goes by the
// records' keys and decodes nothing, so that it takes little from what is measured.
type Verdicts struct {
	mu      sync.Mutex
	waiting map[string]chan verdict
	err     error
	done    chan struct{}
	cancel  context.CancelFunc
}

type verdict struct {
	accepted bool
	at       time.Time
	value    []byte
}

// Verdicts begins to follow at the topic's present end.
func (c *Catalog) Verdicts(ctx context.Context) (*Verdicts, error) {
	return c.verdicts(ctx, c.Topics.Decisions(), (*Verdicts).record)
}

// Told follows the commit rows, from which nodes answer who asks for a decision.
func (c *Catalog) Told(ctx context.Context) (*Verdicts, error) {
	return c.verdicts(ctx, c.Topics.Table(), (*Verdicts).commit)
}

func (c *Catalog) verdicts(ctx context.Context, topic string, read func(*Verdicts, *sarama.ConsumerMessage)) (*Verdicts, error) {
	settings, err := c.env.kafka()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	v := &Verdicts{waiting: map[string]chan verdict{}, done: make(chan struct{}), cancel: cancel}
	opened := make(chan struct{})
	go func() {
		defer close(v.done)
		v.err = settings.TailOpened(ctx, topic, sarama.OffsetNewest, func() { close(opened) }, func(m *sarama.ConsumerMessage) error {
			read(v, m)
			return nil
		})
		if v.err == nil {
			v.err = errStopped
		}
	}()
	select {
	case <-opened:
		return v, nil
	case <-v.done:
		cancel()
		return nil, v.err
	}
}

func (v *Verdicts) record(m *sarama.ConsumerMessage) {
	v.came(string(m.Key), verdict{bytes.Contains(m.Value, []byte(`"verdict":"accepted"`)), time.Now(), m.Value})
}

func (v *Verdicts) commit(m *sarama.ConsumerMessage) {
	c, ok := codec.DecodeRecord(string(m.Key), m.Value).(*codec.Commit)
	if !ok {
		return
	}
	now := time.Now() // as a node, which has to read it first
	for _, d := range c.Decisions {
		v.came(d.StatementID, verdict{d.Verdict == viewkeeper.Accepted, now, m.Value})
	}
}

func (v *Verdicts) came(id string, is verdict) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c, ok := v.waiting[id]; ok {
		delete(v.waiting, id)
		c <- is
	}
}

// Expect gives where the verdict on a statement that is not sent yet will be.
func (v *Verdicts) Expect(id string) <-chan verdict {
	c := make(chan verdict, 1)
	v.mu.Lock()
	v.waiting[id] = c
	v.mu.Unlock()
	return c
}

// Stop ends the following.
func (v *Verdicts) Stop() {
	v.cancel()
	<-v.done
}
