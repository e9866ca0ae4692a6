package fold

import (
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper/codec"
)

// Whatever lies in the table, folding it does not fail, what it asks to write again is
// healed once it is written, and the answers hold together.
func FuzzFold(f *testing.F) {
	f.Add("#fence/a\t{\"format\":1,\"type\":\"fence\"}\nmain.a\t{\"format\":1,\"type\":\"row\",\"name\":\"main.a\",\"version\":1,\"epoch\":1,\"dropped\":true}\n#commit\t{\"format\":1,\"type\":\"commit\",\"version\":1,\"epoch\":1,\"ids\":[{\"id\":\"x\",\"version\":1}]}")
	f.Add("main.a\t\n#commit\t\n#ids/0000\t{\"format\":1,\"type\":\"ids\",\"epoch\":1,\"ids\":[{\"id\":\"x\",\"version\":3},{\"id\":\"y\",\"version\":2}]}\n#ids/0000\t")
	f.Add("#heartbeat\t{\"format\":1,\"type\":\"heartbeat\",\"epoch\":1}\nmain.a\t{\"format\":2}")
	f.Fuzz(func(t *testing.T, log string) {
		fold := New()
		offset := int64(0)
		add := func(r codec.Record) {
			fold.Add(offset, r)
			offset++
		}
		for line := range strings.Lines(log) {
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if value == "" {
				add(codec.Tombstone{TableKey: key})
				continue
			}
			add(codec.DecodeRecord(key, []byte(value)))
		}
		fence := &codec.Fence{Nonce: "own", EpochBase: fold.EpochBase()}
		epoch := FenceEpoch(fence, offset)
		add(fence)
		if fold.Epoch() != epoch {
			t.Skip() // epochs that ran over: nobody gets there
		}
		for _, r := range append(fold.Completion(epoch), fold.Heal(epoch)...) {
			add(r)
		}
		gap, _ := fold.NeedEnd()
		fold.EndIs(gap, offset)
		if fold.Collecting() {
			t.Error("it collects at the end")
		}
		if left := append(fold.Completion(epoch), fold.Heal(epoch)...); len(left) > 0 {
			t.Errorf("after writing it again there is left %v", left)
		}
		fold.Take()
		if _, more := fold.Take(); more {
			t.Error("it gives out the same twice")
		}
	})
}
