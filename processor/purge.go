package processor

import (
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper/internal/fold"
)

// purgeMost is how many drop rows go in one flight.
const purgeMost = 10_000

// sweepTable looks from time to time how far the table is old, and lets the writer purge
// the drop rows in that part (DESIGN.md, rule 9). What fails is tried again the next
// time; nothing depends on it.
func (l *life) sweepTable(o *owner) {
	tick := time.NewTicker(l.sweeps.every)
	defer tick.Stop()
	for {
		below, err := l.admin.OffsetAt(o.ctx, l.topics.Table(), l.now().Add(-l.cfg.PurgeAfter))
		switch {
		case o.ctx.Err() != nil:
			return
		case err != nil:
			l.log.Info("looking for old drop rows failed", "error", err)
		case below > 0:
			select {
			case o.purge <- below:
			case <-o.ctx.Done():
			}
		}
		select {
		case <-tick.C:
		case <-o.ctx.Done():
			return
		}
	}
}

// purgeDrops purges the drop rows whose records lie below an offset: first the commit
// row that says so, acked, then the purge.
func (o *owner) purgeDrops(below int64) error {
	if err := o.follower.wait(o.ctx, o.wrote.MayHeal); err != nil {
		return nil // the owner has ended
	}
	var most int
	var purged []*sarama.ProducerMessage
	again := *o.last
	o.follower.with(func(f *fold.Fold) {
		commit, list := f.Purge(o.epoch, below, purgeMost)
		for _, r := range list {
			purged = append(purged, tableMessage(o.topics.Table(), r))
		}
		if most = len(list); most > 0 {
			again = *commit
		}
	})
	if most == 0 {
		return nil
	}
	again.Owner, again.At, again.Engine, again.BaseDigest = o.cfg.NodeID, o.now(), o.last.Engine, o.last.BaseDigest
	if err := o.send("what is purged", tableMessage(o.topics.Table(), &again)); err != nil {
		return err
	}
	o.last = &again
	if err := o.send("the purge", purged...); err != nil {
		return err
	}
	o.metrics.purged.Add(float64(most))
	o.log.Info("old drop rows are purged", "count", most, "through", again.PurgedThrough)
	if most == purgeMost { // there may be more, after what waits to be written
		select {
		case o.purge <- below:
		default:
		}
	}
	return nil
}
