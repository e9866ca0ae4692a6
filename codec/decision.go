package codec

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/viewkeeper/viewkeeper"
)

// The headers of a decision's record.
const (
	HeaderOffset = "offset"
	HeaderEpoch  = "epoch"
)

type wireDecision struct {
	Format int `json:"format"`
	viewkeeper.Decision
}

// EncodeDecision gives the record of the decisions topic: the statement id as the
// key, the decision with SQL and Rows as the value.
func EncodeDecision(d viewkeeper.Decision) Message {
	return Message{
		Key:   []byte(d.StatementID),
		Value: marshal(wireDecision{max(d.Format, Format), presentable(d)}, d.Extra),
		Headers: []Header{
			{HeaderOffset, []byte(strconv.FormatInt(d.Offset, 10))},
			{HeaderEpoch, []byte(d.Epoch.String())},
		},
	}
}

// DecodeDecision reads the value of a record of the decisions topic. The error says
// why it is not a decision.
func DecodeDecision(value []byte) (viewkeeper.Decision, error) {
	w, extra, err := unmarshal[wireDecision](value)
	if err != nil {
		return viewkeeper.Decision{}, fmt.Errorf("not a decision: %w", err)
	}
	if w.Format < Format1 || w.StatementID == "" || w.Version == 0 {
		return viewkeeper.Decision{}, fmt.Errorf("not a decision: it has no format number, statement id or version")
	}
	w.Normalize()
	w.Decision.Extra = extra
	if w.Format > Format {
		w.Decision.Format = w.Format
	}
	return w.Decision, nil
}

// RowsOf gives the rows that a decision changed, as they were after it, with the
// decision's epoch and whatever a newer program says of them.
func RowsOf(d viewkeeper.Decision) []viewkeeper.Row {
	var left []map[string]json.RawMessage
	if raw, ok := d.Extra["rows"]; ok && (json.Unmarshal(raw, &left) != nil || len(left) != len(d.Rows)) {
		left = nil
	}
	rows := make([]viewkeeper.Row, len(d.Rows))
	for i, r := range d.Rows {
		rows[i] = viewkeeper.Row{Name: r.Name, Version: r.Version, Epoch: d.Epoch, Definition: r.Definition, Format: d.Format}
		if r.Dropped {
			rows[i].Definition = nil
		}
		if left != nil {
			rows[i].Extra = left[i]
		}
	}
	return rows
}

// presentable gives d as JSON can write it.
func presentable(d viewkeeper.Decision) viewkeeper.Decision {
	d.At = jsonTime(d.At)
	d.Changed = append([]viewkeeper.Change(nil), d.Changed...) // Normalize writes into it
	d.Normalize()
	return d
}
