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
		Value: marshal(wireDecision{Format, presentable(d)}, nil),
		Headers: []Header{
			{HeaderOffset, []byte(strconv.FormatInt(d.Offset, 10))},
			{HeaderEpoch, []byte(d.Epoch.String())},
		},
	}
}

// DecodeDecision reads the value of a record of the decisions topic. Fields that
// this program does not know are dropped: a decision is read, and never written
// again from what was read here. The error says why it is not a decision.
func DecodeDecision(value []byte) (viewkeeper.Decision, error) {
	var w wireDecision
	if err := json.Unmarshal(value, &w); err != nil {
		return viewkeeper.Decision{}, fmt.Errorf("not a decision: %w", err)
	}
	if w.Format < Format1 || w.StatementID == "" || w.Version == 0 {
		return viewkeeper.Decision{}, fmt.Errorf("not a decision: it has no format number, statement id or version")
	}
	w.Normalize()
	return w.Decision, nil
}

// presentable gives d as JSON can write it.
func presentable(d viewkeeper.Decision) viewkeeper.Decision {
	d.At = jsonTime(d.At)
	d.Changed = append([]viewkeeper.Change(nil), d.Changed...) // Normalize writes into it
	d.Normalize()
	return d
}
