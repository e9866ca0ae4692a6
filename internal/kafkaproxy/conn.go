package kafkaproxy

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
)

// mostFrame is larger than any frame of Kafka: a length above it means that what comes
// is not Kafka's protocol.
const mostFrame = 1 << 30

// conn is one connection of a client and the one to the broker behind it.
//
// Two goroutines work in it, one for each direction. What the first has forwarded and
// the second has not seen an answer to is in open, by correlation id: a produce request
// without acks gets none, so that a queue would not do.
type conn struct {
	proxy  *Proxy
	client net.Conn
	done   chan struct{}
	once   sync.Once

	mu     sync.Mutex
	server net.Conn
	open   map[int32]pending
	gone   bool // the client is: the connection ends with the last answer
}

// pending is a request without its answer.
type pending struct {
	key, version int16
	lose         bool
	hold         <-chan struct{} // until closed
}

func (c *conn) use(server net.Conn) bool {
	c.mu.Lock()
	c.server = server
	c.mu.Unlock()
	if c.ended() { // and close may have come before there was a server
		_ = server.Close()
		return false
	}
	return true
}

func (c *conn) close() {
	c.once.Do(func() { close(c.done) })
	// An error says that the other side was faster.
	_ = c.client.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil {
		_ = c.server.Close()
	}
}

func (c *conn) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// requests passes on what the client sends. When the client goes, what it has sent is
// still carried out: the connection ends with the last answer.
func (c *conn) requests() {
	for {
		frame, err := readFrame(c.client)
		if err != nil {
			c.mu.Lock()
			c.gone = true
			idle := len(c.open) == 0
			c.mu.Unlock()
			if !idle {
				<-c.done
			}
			return
		}
		if !c.proxy.gate(c) {
			return
		}
		r := c.proxy.request(frame)
		action, healed := c.proxy.ask(r)
		p := pending{key: r.Key, version: r.Version}
		switch action {
		case Pass:
		case Refuse:
			return
		case Hold:
			select {
			case <-healed:
			case <-c.done:
				return
			}
		case LoseAnswer:
			p.lose = true
		case HoldAnswer:
			p.hold = healed
		}
		c.mu.Lock()
		if r.answered() {
			c.open[r.correlation] = p
		}
		c.mu.Unlock()
		if writeFrame(c.server, frame) != nil {
			return
		}
	}
}

// answers passes on what the broker sends.
func (c *conn) answers() {
	for {
		frame, err := readFrame(c.server)
		if err != nil {
			return
		}
		if !c.proxy.gate(c) {
			return
		}
		var p pending
		known := false
		if len(frame) >= 4 {
			id := int32(binary.BigEndian.Uint32(frame))
			c.mu.Lock()
			p, known = c.open[id]
			delete(c.open, id)
			c.mu.Unlock()
		}
		if p.lose {
			return
		}
		if p.hold != nil {
			select {
			case <-p.hold:
			case <-c.done:
				return
			}
		}
		if known {
			frame = c.proxy.rewrite(p.key, p.version, frame)
		}
		err = writeFrame(c.client, frame)
		c.mu.Lock()
		last := (c.gone || err != nil) && len(c.open) == 0
		c.mu.Unlock()
		if last {
			return
		}
	}
}

func readFrame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > mostFrame {
		return nil, io.ErrUnexpectedEOF
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(r, frame)
	return frame, err
}

func writeFrame(w io.Writer, frame []byte) error {
	out := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(frame)), uint32(len(frame)))
	_, err := w.Write(append(out, frame...))
	return err
}
