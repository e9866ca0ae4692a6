package kafkaproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
)

// Proxy stands before the brokers of one cluster.
type Proxy struct {
	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup
	first  []string // addresses here of the brokers that it was started with

	// asking lets one request at a time to the intercepting function.
	asking sync.Mutex

	mu        sync.Mutex
	state     state
	healed    chan struct{} // closed by the next Heal
	intercept func(Request) Action
	doors     map[string]net.Listener // by the broker's own address
	conns     map[*conn]struct{}
	topics    map[[16]byte]string // the names of topic ids, from Metadata answers
}

type state int

const (
	passing state = iota
	silent
	cut
)

// Start listens for these brokers (host:port), and later for each further one that
// they name. It ends with ctx or Close.
func Start(ctx context.Context, brokers []string) (*Proxy, error) {
	p := &Proxy{healed: make(chan struct{}), doors: map[string]net.Listener{}, conns: map[*conn]struct{}{}, topics: map[[16]byte]string{}}
	p.ctx, p.cancel = context.WithCancel(ctx)
	for _, b := range brokers {
		here, err := p.door(b)
		if err != nil {
			p.Close()
			return nil, err
		}
		p.first = append(p.first, here)
	}
	context.AfterFunc(p.ctx, p.shut)
	return p, nil
}

// Brokers gives the addresses to start a client with: host:port,host:port,...
func (p *Proxy) Brokers() string { return strings.Join(p.first, ",") }

// Cut closes all connections, and every new one at once, until Heal.
func (p *Proxy) Cut() { p.set(cut) }

// Silence lets connections stay open, and new ones come up, but nothing passes either
// way until Heal. What a socket holds already may still arrive.
func (p *Proxy) Silence() { p.set(silent) }

func (p *Proxy) set(s state) {
	p.mu.Lock()
	p.state = s
	open := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		open = append(open, c)
	}
	p.mu.Unlock()
	if s == cut {
		for _, c := range open {
			c.close()
		}
	}
}

// Heal ends Cut and Silence, and lets go of all that is held. The intercepting
// function stays.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = passing
	close(p.healed)
	p.healed = make(chan struct{})
}

// Intercept has f asked about each request before it is forwarded, nil nobody. f is
// called for one request at a time and must not wait for another.
func (p *Proxy) Intercept(f func(Request) Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.intercept = f
}

// Close closes every connection and returns when nothing of the proxy runs any more.
func (p *Proxy) Close() {
	p.cancel()
	p.shut()
	p.wait.Wait()
}

func (p *Proxy) shut() {
	p.mu.Lock()
	doors, conns := p.doors, make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		conns = append(conns, c)
	}
	p.doors = map[string]net.Listener{}
	p.mu.Unlock()
	for _, l := range doors {
		_ = l.Close() // a listener that is closed already
	}
	for _, c := range conns {
		c.close()
	}
}

// door gives the address here of a broker, and opens it when it is new.
func (p *Proxy) door(broker string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.doors[broker]; l != nil {
		return l.Addr().String(), nil
	}
	if p.ctx.Err() != nil {
		return "", p.ctx.Err()
	}
	var listen net.ListenConfig
	l, err := listen.Listen(p.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listening for the broker %s: %w", broker, err)
	}
	p.doors[broker] = l
	p.wait.Go(func() { p.accept(l, broker) })
	return l.Addr().String(), nil
}

func (p *Proxy) accept(l net.Listener, broker string) {
	for {
		client, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // of one connection that went before it was taken
		}
		p.wait.Go(func() { p.serve(client, broker) })
	}
}

// serve passes one connection on until it ends.
func (p *Proxy) serve(client net.Conn, broker string) {
	c := &conn{proxy: p, client: client, done: make(chan struct{}), open: map[int32]pending{}}
	defer c.close()
	if !p.enter(c) {
		return
	}
	defer p.leave(c)
	var dial net.Dialer
	server, err := dial.DialContext(p.ctx, "tcp", broker)
	if err != nil {
		return // the client sees what it would see of a broker that is down
	}
	if !c.use(server) {
		return
	}
	p.wait.Go(func() {
		defer c.close()
		c.answers()
	})
	c.requests()
}

func (p *Proxy) enter(c *conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == cut || p.ctx.Err() != nil {
		return false
	}
	p.conns[c] = struct{}{}
	return true
}

func (p *Proxy) leave(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// gate waits while the proxy is silent. It says false when the connection has ended.
func (p *Proxy) gate(c *conn) bool {
	for {
		p.mu.Lock()
		s, healed := p.state, p.healed
		p.mu.Unlock()
		if s != silent {
			return !c.ended()
		}
		select {
		case <-healed:
		case <-c.done:
			return false
		}
	}
}

// ask gives what is to be done with a request, and the Heal that ends it.
func (p *Proxy) ask(r Request) (Action, <-chan struct{}) {
	p.asking.Lock()
	defer p.asking.Unlock()
	p.mu.Lock()
	f, healed := p.intercept, p.healed
	p.mu.Unlock()
	if f == nil {
		return Pass, healed
	}
	return f(r), healed
}
