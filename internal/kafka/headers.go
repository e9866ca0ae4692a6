package kafka

import (
	"fmt"
	"strings"

	"github.com/IBM/sarama"
)

// twice marks the key of a header that a record has already. goka makes a map of a
// record's headers, and the last one of a key would hide that there were two.
const twice = "\x00"

// HeaderKey is a header's own key, of one that came through [allHeaders].
func HeaderKey(key string) string {
	key, _, _ = strings.Cut(key, twice)
	return key
}

// allHeaders is a consumer interceptor that lets no header hide another. A key with a
// NUL is nobody's that is read here, and is left out.
type allHeaders struct{}

// OnConsume gives each header that is not the first of its key another one.
func (allHeaders) OnConsume(m *sarama.ConsumerMessage) {
	seen := map[string]bool{}
	kept := m.Headers[:0]
	for i, h := range m.Headers {
		key := string(h.Key)
		if strings.Contains(key, twice) {
			continue
		}
		if seen[key] {
			h.Key = fmt.Append(h.Key, twice, i)
		}
		seen[key] = true
		kept = append(kept, h)
	}
	m.Headers = kept
}
