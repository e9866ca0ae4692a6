package codec

import (
	"strconv"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// The reserved keys of the table. A definition's name never starts with #.
const (
	KeyCommit    = "#commit"
	KeyHeartbeat = "#heartbeat"
	prefixFence  = "#fence/"
	prefixIDs    = "#ids/"
)

// keyKind is what a key can hold.
type keyKind int

const (
	keyUnknown keyKind = iota
	keyRow
	keyCommit
	keyFence
	keyHeartbeat
	keyIDs
)

// tableKey is a key taken apart: the kind, and its own part.
type tableKey struct {
	kind  keyKind
	name  viewkeeper.Name
	nonce string
	slot  int
}

// parseKey is the inverse of Record.Key. Only the canonical spelling counts:
// two keys must never stand for one thing, since compaction keeps both.
func parseKey(key string) tableKey {
	switch {
	case key == KeyCommit:
		return tableKey{kind: keyCommit}
	case key == KeyHeartbeat:
		return tableKey{kind: keyHeartbeat}
	case strings.HasPrefix(key, prefixFence):
		if nonce := key[len(prefixFence):]; nonce != "" {
			return tableKey{kind: keyFence, nonce: nonce}
		}
	case strings.HasPrefix(key, prefixIDs):
		slot, err := strconv.Atoi(key[len(prefixIDs):])
		if err == nil && slot >= 0 && slot < Slots && slotKey(slot) == key {
			return tableKey{kind: keyIDs, slot: slot}
		}
	case strings.HasPrefix(key, "#"):
	default:
		name, err := viewkeeper.ParseName(key)
		if err == nil && name.String() == key {
			return tableKey{kind: keyRow, name: name}
		}
	}
	return tableKey{}
}

// RowKey gives the name whose row lies under a key of the table.
func RowKey(key string) (viewkeeper.Name, bool) {
	k := parseKey(key)
	return k.name, k.kind == keyRow
}

// SlotKey gives the slot of the ring of ids that lies under a key of the table.
func SlotKey(key string) (int, bool) {
	k := parseKey(key)
	return k.slot, k.kind == keyIDs
}
