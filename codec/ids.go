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
