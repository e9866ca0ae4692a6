package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// The wire structs are the JSON of the table's values, field for field as in
// FORMAT.md. Their order is the order on the wire.

type wireHead struct {
	Format int    `json:"format"`
	Type   string `json:"type"`
}

type wireRow struct {
	wireHead
	Name       viewkeeper.Name        `json:"name"`
	Version    viewkeeper.Version     `json:"version"`
	Epoch      viewkeeper.Epoch       `json:"epoch"`
	Dropped    bool                   `json:"dropped"`
	Definition *viewkeeper.Definition `json:"definition,omitempty"`
}

// wireCommit is the commit row as it is read, and its two halves as it is written: the
// fields before the lists of decisions and rows, and those after.
type wireCommit struct {
	wireCommitBefore
	Decisions []json.RawMessage `json:"decisions"`
	Rows      []json.RawMessage `json:"rows"`
	wireCommitAfter
}

type wireCommitBefore struct {
	wireHead
	Version          viewkeeper.Version `json:"version"`
	Epoch            viewkeeper.Epoch   `json:"epoch"`
	Owner            string             `json:"owner"`
	At               time.Time          `json:"at"`
	Engine           string             `json:"engine"`
	BaseDigest       string             `json:"base_digest"`
	DefinitionsTopic string             `json:"definitions_topic"`
	VersionBase      viewkeeper.Version `json:"version_base"`
	EpochBase        viewkeeper.Epoch   `json:"epoch_base"`
	PurgedThrough    viewkeeper.Version `json:"purged_through"`
}

type wireCommitAfter struct {
	IDs  []ID     `json:"ids"`
	Live *LiveSum `json:"live,omitempty"`
}

type wireFence struct {
	wireHead
	EpochBase viewkeeper.Epoch `json:"epoch_base"`
	Owner     string           `json:"owner"`
	At        time.Time        `json:"at"`
}

type wireHeartbeat struct {
	wireHead
	Version    viewkeeper.Version `json:"version"`
	Epoch      viewkeeper.Epoch   `json:"epoch"`
	Owner      string             `json:"owner"`
	At         time.Time          `json:"at"`
	Engine     string             `json:"engine"`
	BaseDigest string             `json:"base_digest"`
	Reasons    map[string]string  `json:"reasons,omitempty"`
}

type wireIDs struct {
	wireHead
	Version viewkeeper.Version `json:"version"`
	Epoch   viewkeeper.Epoch   `json:"epoch"`
	IDs     []ID               `json:"ids"`
}

// The types on the wire.
const (
	typeRow       = "row"
	typeCommit    = "commit"
	typeFence     = "fence"
	typeHeartbeat = "heartbeat"
	typeIDs       = "ids"
)

// EncodeRecord gives the key and the value of a record. The value of a Tombstone
// is nil. Invalid UTF-8 in a text comes out as U+FFFD.
func EncodeRecord(r Record) (key string, value []byte) {
	switch r := r.(type) {
	case Row:
		value = encodeRow(r.Row)
	case *Commit:
		value = encodeCommit(r)
	case *Fence:
		value = marshal(wireFence{head(r.Format, typeFence), r.EpochBase, r.Owner, jsonTime(r.At)}, r.Extra)
	case *Heartbeat:
		value = marshal(wireHeartbeat{head(r.Format, typeHeartbeat), r.Version, r.Epoch, r.Owner, jsonTime(r.At), r.Engine, r.BaseDigest, r.Reasons}, r.Extra)
	case *IDs:
		var ok bool
		if value, ok = appendSlot(r); ok {
			break
		}
		value = marshal(wireIDs{head(r.Format, typeIDs), r.Version, r.Epoch, list(r.IDs)}, withIDs(r.Extra, r.IDs))
	case Unknown:
		value = r.Value
	}
	return r.Key(), value
}

// DecodeRecord reads a record of the table. It never fails: what it can't read is
// an Unknown. A nil value is a Tombstone.
func DecodeRecord(key string, value []byte) Record {
	if value == nil {
		return Tombstone{TableKey: key}
	}
	k := parseKey(key)
	var r Record
	var err error
	switch k.kind {
	case keyRow:
		var row viewkeeper.Row
		if row, err = decodeRow(value); err == nil && row.Name != k.name {
			err = fmt.Errorf("the row of %s lies under another key", row.Name)
		}
		r = Row{row}
	case keyCommit:
		r, err = decodeCommit(value)
	case keyFence:
		r, err = decodeFence(k.nonce, value)
	case keyHeartbeat:
		r, err = decodeHeartbeat(value)
	case keyIDs:
		r, err = decodeIDs(k.slot, value)
	default:
		err = errors.New("no record has such a key")
	}
	if err != nil {
		return Unknown{TableKey: key, Value: value, Newer: looksNewer(value), Reason: err.Error()}
	}
	return r
}

// looksNewer reports whether value says that it is of a format above this one.
func looksNewer(value []byte) bool {
	var h wireHead
	return json.Unmarshal(value, &h) == nil && h.Format > Format
}

// head gives a record's first fields. A record that was read in a newer format is
// written back with that number.
func head(format int, kind string) wireHead {
	return wireHead{Format: max(format, Format), Type: kind}
}

func (h wireHead) check(kind string) error {
	switch {
	case h.Format < Format1:
		return errors.New("it has no format number")
	case h.Type != kind:
		return fmt.Errorf("its type is %q and not %q", h.Type, kind)
	}
	return nil
}

// list makes an absent list an empty one.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

func encodeRow(r viewkeeper.Row) []byte {
	w := wireRow{head(r.Format, typeRow), r.Name, r.Version, r.Epoch, !r.Live(), r.Definition}
	extra := r.Extra
	if _, ok := extra["definition"]; ok && !r.Live() {
		// What a newer program says about a definition goes with the definition.
		extra = without(extra, "definition")
	}
	return marshal(w, extra)
}

func without(m map[string]json.RawMessage, key string) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(m))
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}

func decodeRow(value []byte) (viewkeeper.Row, error) {
	w, extra, err := unmarshal[wireRow](value)
	if err != nil {
		return viewkeeper.Row{}, err
	}
	return w.row(extra)
}

// row gives the row, if it is one.
func (w wireRow) row(extra map[string]json.RawMessage) (viewkeeper.Row, error) {
	err := w.check(typeRow)
	switch {
	case err != nil:
	case w.Name.IsZero():
		err = errors.New("it has no name")
	case w.Dropped == (w.Definition != nil):
		err = errors.New("a row is either dropped or has a definition")
	case w.Definition != nil && w.Definition.Name != w.Name:
		err = fmt.Errorf("its definition is named %s", w.Definition.Name)
	}
	if err != nil {
		return viewkeeper.Row{}, err
	}
	return viewkeeper.Row{Name: w.Name, Version: w.Version, Epoch: w.Epoch, Definition: w.Definition, Extra: extra, Format: w.Format}, nil
}

// encodeCommit puts the lists, of which each element is JSON already, between the
// fields around them: encoding/json would read and check every byte of them again.
func encodeCommit(c *Commit) []byte {
	before := marshal(wireCommitBefore{
		head(c.Format, typeCommit), c.Version, c.Epoch, c.Owner, jsonTime(c.At), c.Engine, c.BaseDigest,
		c.DefinitionsTopic, c.VersionBase, c.EpochBase, c.PurgedThrough,
	}, nil)
	after := marshal(wireCommitAfter{list(c.IDs), c.Live}, nil)
	decisions, rows := make([][]byte, len(c.Decisions)), make([][]byte, len(c.Rows))
	size := len(before) + len(after) + len(c.Decisions) + len(c.Rows) + 32
	for i, d := range c.Decisions {
		decisions[i] = marshal(presentable(d), d.Extra)
		size += len(decisions[i])
	}
	for i, r := range c.Rows {
		r.Epoch = c.Epoch
		rows[i] = encodeRow(r)
		size += len(rows[i])
	}
	out := append(make([]byte, 0, size), before[:len(before)-1]...)
	out = appendList(append(out, `,"decisions":`...), decisions)
	out = appendList(append(out, `,"rows":`...), rows)
	out = append(append(out, ','), after[1:]...)
	if extra := withIDs(c.Extra, c.IDs); len(extra) > 0 {
		out = mergeExtra(out, extra)
	}
	return out
}

func appendList(b []byte, elements [][]byte) []byte {
	b = append(b, '[')
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, e...)
	}
	return append(b, ']')
}

func decodeCommit(value []byte) (*Commit, error) {
	// With nothing in it that is not known here, which is nearly always so, the whole of
	// it is read at once.
	if w, err := strictly[wireCommitWhole](value); err == nil {
		if c, err := w.commit(); err == nil {
			return c, nil
		}
	}
	return decodeAnyCommit(value)
}

// wireCommitWhole is a commit row without fields that are not known here.
type wireCommitWhole struct {
	wireCommitBefore
	Decisions []viewkeeper.Decision `json:"decisions"`
	Rows      []wireRow             `json:"rows"`
	wireCommitAfter
}

func (w *wireCommitWhole) commit() (*Commit, error) {
	if err := w.check(typeCommit); err != nil {
		return nil, err
	}
	c := w.wireCommitBefore.commit(w.wireCommitAfter)
	for _, d := range w.Decisions {
		d.Normalize()
		if w.Format > Format {
			d.Format = w.Format
		}
		c.Decisions = append(c.Decisions, d)
	}
	for _, in := range w.Rows {
		r, err := in.row(nil)
		if err != nil {
			return nil, err
		}
		r.Epoch = c.Epoch
		c.Rows = append(c.Rows, r)
	}
	return c, nil
}

// commit gives the commit row without its decisions and rows.
func (w wireCommitBefore) commit(after wireCommitAfter) *Commit {
	return &Commit{
		Version: w.Version, Epoch: w.Epoch, Owner: w.Owner, At: w.At, Engine: w.Engine, BaseDigest: w.BaseDigest,
		DefinitionsTopic: w.DefinitionsTopic, VersionBase: w.VersionBase, EpochBase: w.EpochBase, PurgedThrough: w.PurgedThrough,
		IDs: after.IDs, Live: after.Live, Format: w.Format,
	}
}

// decodeAnyCommit is decodeCommit that keeps what is not known here.
func decodeAnyCommit(value []byte) (*Commit, error) {
	w, extra, err := unmarshal[wireCommit](value)
	if err == nil {
		err = w.check(typeCommit)
	}
	if err != nil {
		return nil, err
	}
	c := w.wireCommitBefore.commit(w.wireCommitAfter)
	c.Extra = takeIDs(extra, w.IDs)
	for i, raw := range w.Decisions {
		d, extra, err := unmarshal[viewkeeper.Decision](raw)
		if err != nil {
			return nil, fmt.Errorf("its decision %d: %w", i, err)
		}
		d.Normalize()
		d.Extra = extra
		if w.Format > Format {
			d.Format = w.Format // a decision in a commit row has no number of its own
		}
		c.Decisions = append(c.Decisions, d)
	}
	for i, raw := range w.Rows {
		r, err := decodeRow(raw)
		if err != nil {
			return nil, fmt.Errorf("its row %d: %w", i, err)
		}
		r.Epoch = c.Epoch
		c.Rows = append(c.Rows, r)
	}
	return c, nil
}

func decodeFence(nonce string, value []byte) (*Fence, error) {
	w, extra, err := unmarshal[wireFence](value)
	if err == nil {
		err = w.check(typeFence)
	}
	if err != nil {
		return nil, err
	}
	return &Fence{Nonce: nonce, EpochBase: w.EpochBase, Owner: w.Owner, At: w.At, Format: w.Format, Extra: extra}, nil
}

func decodeHeartbeat(value []byte) (*Heartbeat, error) {
	w, extra, err := unmarshal[wireHeartbeat](value)
	if err == nil {
		err = w.check(typeHeartbeat)
	}
	if err != nil {
		return nil, err
	}
	return &Heartbeat{
		Version: w.Version, Epoch: w.Epoch, Owner: w.Owner, At: w.At, Engine: w.Engine, BaseDigest: w.BaseDigest,
		Reasons: w.Reasons, Format: w.Format, Extra: extra,
	}, nil
}

func decodeIDs(slot int, value []byte) (*IDs, error) {
	if r, ok := readSlot(slot, value); ok {
		return r, nil
	}
	return decodeAnyIDs(slot, value)
}

// decodeAnyIDs is decodeIDs for a row in any form.
func decodeAnyIDs(slot int, value []byte) (*IDs, error) {
	w, extra, err := unmarshal[wireIDs](value)
	if err == nil {
		err = w.check(typeIDs)
	}
	if err != nil {
		return nil, err
	}
	return &IDs{Slot: slot, Version: w.Version, Epoch: w.Epoch, IDs: w.IDs, Format: w.Format, Extra: takeIDs(extra, w.IDs)}, nil
}
