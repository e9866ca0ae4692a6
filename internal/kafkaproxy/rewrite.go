package kafkaproxy

import (
	"net"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// rewrite writes the addresses here into an answer that names brokers. One that it
// does not know goes through as it came.
func (p *Proxy) rewrite(key, version int16, frame []byte) []byte {
	switch kmsg.Key(key) {
	case kmsg.Metadata, kmsg.FindCoordinator, kmsg.DescribeCluster, kmsg.Produce, kmsg.Fetch:
	default:
		return frame
	}
	req := kmsg.RequestForKey(key)
	if version > req.MaxVersion() {
		return frame
	}
	req.SetVersion(version)
	resp := req.ResponseKind()
	resp.SetVersion(version)
	body := frame[4:]
	if req.IsFlexible() {
		body = skipTags(body)
	}
	if resp.ReadFrom(body) != nil {
		return frame
	}
	changed := false
	here := func(host *string, port *int32) {
		if *host == "" || *port <= 0 {
			return // no broker: an error is told
		}
		addr, err := p.door(net.JoinHostPort(*host, strconv.Itoa(int(*port))))
		if err != nil {
			return // the proxy ends
		}
		h, n, err := net.SplitHostPort(addr)
		if err != nil {
			return
		}
		number, err := strconv.Atoi(n)
		if err != nil {
			return
		}
		*host, *port, changed = h, int32(number), true
	}
	switch a := resp.(type) {
	case *kmsg.MetadataResponse:
		for i := range a.Brokers {
			here(&a.Brokers[i].Host, &a.Brokers[i].Port)
		}
		for _, t := range a.Topics {
			if t.Topic != nil {
				p.nameTopic(t.TopicID, *t.Topic)
			}
		}
	case *kmsg.FindCoordinatorResponse:
		here(&a.Host, &a.Port)
		for i := range a.Coordinators {
			here(&a.Coordinators[i].Host, &a.Coordinators[i].Port)
		}
	case *kmsg.DescribeClusterResponse:
		for i := range a.Brokers {
			here(&a.Brokers[i].Host, &a.Brokers[i].Port)
		}
	case *kmsg.ProduceResponse: // where a leader has moved to
		for i := range a.Brokers {
			here(&a.Brokers[i].Host, &a.Brokers[i].Port)
		}
	case *kmsg.FetchResponse:
		for i := range a.Brokers {
			here(&a.Brokers[i].Host, &a.Brokers[i].Port)
		}
	}
	if !changed {
		return frame
	}
	head := append([]byte(nil), frame[:len(frame)-len(body)]...)
	return resp.AppendTo(head)
}

func (p *Proxy) nameTopic(id [16]byte, name string) {
	if id == [16]byte{} {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.topics[id] = name
}

func (p *Proxy) topicName(id [16]byte) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.topics[id]
}
