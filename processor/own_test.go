package processor

import (
	"reflect"
	"testing"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// What an owner reads back of its own it knows by the bytes; of whatever else lies under
// the key it reads what it says.
func TestOwnRecordsAreKnownByTheirBytes(t *testing.T) {
	row := func(v viewkeeper.Version) codec.Row {
		return codec.Row{Row: viewkeeper.Row{Name: viewkeeper.MakeName("", "a"), Version: v, Epoch: 3}}
	}
	commit := &codec.Commit{Version: 7, Epoch: 3, Rows: []viewkeeper.Row{row(7).Row}}
	consumed := func(m *sarama.ProducerMessage) *sarama.ConsumerMessage {
		key, _ := m.Key.Encode()
		out := &sarama.ConsumerMessage{Key: key}
		if m.Value != nil {
			out.Value, _ = m.Value.Encode()
		}
		for _, h := range m.Headers {
			out.Headers = append(out.Headers, &h)
		}
		return out
	}
	o := own{}
	for _, r := range []codec.Record{commit, row(7)} {
		o.expect(r, tableMessage("table", r))
	}
	if got := o.decode(consumed(tableMessage("table", commit))); got != codec.Record(commit) {
		t.Errorf("the commit row is read as another one: %+v", got)
	}
	// Somebody else's row lies under the key of ours.
	if got, ok := o.decode(consumed(tableMessage("table", row(6)))).(codec.Row); !ok || got.Version != 6 {
		t.Errorf("another's row is read as %+v", got)
	}
	if got, ok := o.decode(consumed(tableMessage("table", row(7)))).(codec.Row); !ok || got.Version != 7 {
		t.Errorf("our own row behind it is read as %+v", got)
	}
	if len(o) != 0 {
		t.Errorf("kept after it was read: %v", o)
	}
	o.expect(row(8), tableMessage("table", row(8)))
	if got := o.decode(&sarama.ConsumerMessage{Key: []byte("main.a")}); !reflect.DeepEqual(got, codec.Tombstone{TableKey: "main.a"}) {
		t.Errorf("a tombstone is read as %+v", got)
	}
	purge := codec.Purge{Name: viewkeeper.MakeName("", "b"), Version: 4, Epoch: 3}
	o.expect(purge, tableMessage("table", purge)) // has no bytes to be known by
	if got := o.decode(consumed(tableMessage("table", purge))); got != codec.Record(purge) {
		t.Errorf("a purge is read as %+v", got)
	}
}
