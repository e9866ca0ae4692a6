package codec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/viewkeeper/viewkeeper"
)

// The ring of known statement ids: Slots rows of the table, each for SlotSpan
// versions in a row, overwritten when the versions come round again. It reaches
// back over 261,888 versions at least, so over more than 100,000 ids even where a
// transactional producer takes a second offset for each statement.
const (
	Slots    = 1024
	SlotSpan = 256
)

// ID is a statement id that is known, the text that it came with, and the version
// that the statement was decided at.
type ID struct {
	ID      string             `json:"id"`
	Text    TextHash           `json:"text"`
	Version viewkeeper.Version `json:"version"`
	// Extra is a JSON object of the fields of a newer program, "" for none. It is text
	// so that ids can be compared.
	Extra string `json:"-"`
}

// IDs is one slot of the ring: its ids of the last round, ordered by version.
// Version is the highest among them, Epoch the owner that wrote this copy.
type IDs struct {
	Slot    int
	Version viewkeeper.Version
	Epoch   viewkeeper.Epoch
	IDs     []ID

	Format int
	Extra  map[string]json.RawMessage
}

// Slot gives the slot of a version.
func Slot(v viewkeeper.Version) int { return int(uint64(v) / SlotSpan % Slots) }

// SlotStart gives the first version of the slot's round that v belongs to: an id
// of the slot below it is of an earlier round, and forgotten.
func SlotStart(v viewkeeper.Version) viewkeeper.Version { return v - v%SlotSpan }

func slotKey(slot int) string { return fmt.Sprintf("%s%04d", prefixIDs, slot) }

// TextHash tells texts apart: the first 16 bytes of a SHA-256, in hexadecimal.
type TextHash string

// HashText gives the hash of what a submission says: its text, or for a tombstone
// the key that it drops.
func HashText(s viewkeeper.Submission) TextHash {
	h := sha256.New()
	if s.Tombstone {
		h.Write([]byte("\x00drop\x00" + s.Key))
	} else {
		h.Write([]byte(s.SQL))
	}
	return TextHash(hex.EncodeToString(h.Sum(nil)[:16]))
}

// takeIDs moves what was left over of the list of ids to each id, so that it stays
// with the id when that is written in another record.
func takeIDs(extra map[string]json.RawMessage, ids []ID) map[string]json.RawMessage {
	var left []json.RawMessage
	if raw, ok := extra["ids"]; !ok || json.Unmarshal(raw, &left) != nil || len(left) != len(ids) {
		return extra
	}
	for i, raw := range left {
		if isObject(raw) {
			ids[i].Extra = string(raw)
		}
	}
	if extra = without(extra, "ids"); len(extra) == 0 {
		return nil
	}
	return extra
}

// withIDs is the inverse of takeIDs.
func withIDs(extra map[string]json.RawMessage, ids []ID) map[string]json.RawMessage {
	left, some := make([]json.RawMessage, len(ids)), false
	for i, id := range ids {
		left[i] = json.RawMessage("null")
		if id.Extra != "" && json.Valid([]byte(id.Extra)) {
			left[i], some = json.RawMessage(id.Extra), true
		}
	}
	if !some {
		return extra
	}
	extra = without(extra, "ids")
	extra["ids"] = marshal(left, nil)
	return extra
}
