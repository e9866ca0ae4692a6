package processor

import (
	"context"
	"time"
)

// takenWait is the time between two looks at whether the other process under this
// one's node id is still there.
const takenWait = 5 * time.Second

// untilFree waits while another process works in the group under this one's node id,
// which threw this one out with the error out. The brokers let the last comer work: who
// came back while the other lives would throw that one out in turn, and so on. One that
// died is gone from the group when its session has timed out.
func (p *Processor) untilFree(ctx context.Context, out error) error {
	a, err := p.settings.OpenAdmin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }()
	for {
		there, err := a.HasMember(ctx, string(p.topics.Group()), instanceID(p.cfg.NodeID))
		if err != nil || !there {
			return err
		}
		p.board.ended(out)
		pause := time.NewTimer(takenWait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}
