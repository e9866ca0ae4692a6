package kafka

import (
	"math/rand/v2"
	"slices"

	"github.com/IBM/sarama"
)

// probes is how many brokers Awake asks at once.
const probes = 5

// Awake gives settings whose brokers are those that the cluster says are alive now.
//
// sarama tries the brokers that it is given one after the other, in random order,
// and waits out the net timeouts at each that takes the connection and says nothing,
// as a stopped or overloaded one does. So all are asked at once here, and the first
// answer names the living. When none answers the settings are as they were. With one
// broker there is nothing to choose, and nobody is asked.
func (s Settings) Awake() Settings {
	if len(s.Brokers) < 2 {
		return s
	}
	asked := slices.Clone(s.Brokers)
	rand.Shuffle(len(asked), func(i, j int) { asked[i], asked[j] = asked[j], asked[i] })
	asked = asked[:min(len(asked), probes)]
	answers := make(chan []string, len(asked))
	for _, addr := range asked {
		go func() { answers <- s.living(addr) }() // ends by the net timeouts
	}
	for range asked {
		if alive := <-answers; len(alive) > 0 {
			return s.with(alive) // a copy: those asked may still be reading s
		}
	}
	return s
}

// living asks one broker who is alive, nil when it does not answer.
func (s Settings) living(addr string) []string {
	config := s.Sarama()
	b := sarama.NewBroker(addr)
	if b.Open(config) != nil {
		return nil
	}
	defer b.Close()
	// Asking for no topic gives all of them in sarama, so one that need not exist is
	// named.
	meta, err := b.GetMetadata(sarama.NewMetadataRequest(config.Version, []string{"viewkeeper"}))
	if err != nil {
		return nil
	}
	var alive []string
	for _, b := range meta.Brokers {
		alive = append(alive, b.Addr())
	}
	return alive
}
