package view

import (
	"context"
	"slices"

	"github.com/viewkeeper/viewkeeper"
)

// Event is a catalog version that changed something.
type Event struct {
	Version viewkeeper.Version `json:"version"`
	// Changed are the definitions that the version changed, came, went, or whose
	// output it changed. Sorted.
	Changed []viewkeeper.Name `json:"changed"`
}

// watchPage is how many decisions a watcher reads at once.
const watchPage = 100

// Watch calls send for each version above from that changed something, in order,
// each when this node's factory has it, until ctx ends or send fails; it returns
// the error of either. A watcher goes through the history at its own pace and holds
// nobody up. Where the history after from is not whole here yet, it waits for it; a
// *HistoryGoneError says that it never will be.
func (n *Node) Watch(ctx context.Context, from viewkeeper.Version, send func(Event) error) error {
	for {
		c := n.wake.C()
		top := n.reg.Current().Version()
		more, err := n.watchSome(&from, top, send)
		if err != nil {
			return err
		}
		if more {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		select {
		case <-c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watchSome sends what there is between from and top, a page at most.
func (n *Node) watchSome(from *viewkeeper.Version, top viewkeeper.Version, send func(Event) error) (more bool, err error) {
	if *from >= top {
		return false, nil
	}
	d := n.decisions
	d.mu.Lock()
	complete, whole := d.completeFrom(), d.isWhole()
	d.mu.Unlock()
	if *from+1 < complete {
		if whole {
			return false, &HistoryGoneError{*from, complete}
		}
		return false, nil // the index has yet to get there
	}
	page, err := d.page(DecisionQuery{Since: *from, Limit: watchPage})
	if err != nil {
		return false, nil // it is being read again
	}
	for _, x := range page.Decisions {
		if x.Version > top {
			return false, nil
		}
		if x.Verdict == viewkeeper.Accepted {
			if err := send(Event{x.Version, changedNames(x)}); err != nil {
				return false, err
			}
		}
		*from = x.Version
	}
	if !page.More {
		*from = max(*from, top)
	}
	return page.More, nil
}

func changedNames(d viewkeeper.Decision) []viewkeeper.Name {
	names := make([]viewkeeper.Name, 0, len(d.Changed))
	for _, c := range d.Changed {
		names = append(names, c.Name)
		if c.RenamedTo != nil {
			names = append(names, *c.RenamedTo)
		}
	}
	names = append(names, d.Dropped...)
	slices.SortFunc(names, viewkeeper.Name.Compare)
	return slices.Compact(names)
}
