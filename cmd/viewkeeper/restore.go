package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

func (a *app) restoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore DIR",
		Short: "Put a lost table back",
		Long: `restore writes the definitions of an export back to a table that was lost: deleted
and made anew, or emptied. What was decided after the export is taken from the
decisions topic as far as that reaches, so that with an intact decisions topic
nothing is missing. Versions and epochs go on above all that was ever seen.

Statement ids are known again as far as the decisions topic reaches. A table that
holds a catalog is refused. Stop the owners first; start them when it is done.`,
		Example: "  viewkeeper restore backup/ --brokers kafka:9092 --catalog prod",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.restore(cmd.Context(), args[0]) },
	}
	a.use(cmd.Flags(), "brokers", "catalog", "timeout")
	return cmd
}

func (a *app) restore(ctx context.Context, dir string) error {
	in, err := readExport(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return usagef("there is no %s in %s; 'viewkeeper export' writes it", exportName, dir)
	case err != nil:
		return err
	}
	topics, err := a.openTopics()
	if err != nil {
		return err
	}
	defer topics.Close()
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	if in.Catalog != a.Catalog {
		return usagef("the export in %s is of catalog %s and not of %s", dir, in.Catalog, a.Catalog)
	}
	table, err := topics.table(ctx)
	if err != nil {
		return err
	}
	if table.Commit() != nil {
		return refusedf("the table of catalog %s holds a catalog at version %s; restore is for one that was lost", a.Catalog, table.Version())
	}
	plan, err := topics.planRestore(ctx, in)
	if err != nil {
		return err
	}
	plan.commit.EpochBase = max(plan.commit.EpochBase, table.Epoch(), table.EpochBase())
	if err := topics.takeOver(ctx, plan.commit, plan.rows, plan.ids); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "restored %d definitions of catalog %s at version %s (the export had version %s, %d decisions came after it)\n",
		len(plan.rows), a.Catalog, plan.commit.Version, in.Version, plan.later)
	return err
}

// restorePlan is what a restore writes.
type restorePlan struct {
	commit *codec.Commit
	rows   []viewkeeper.Row
	ids    map[int]*codec.IDs // the ring of known statement ids
	later  int                // decisions after the export
}

// ringOf makes the ring of known statement ids from decisions in the order of their
// versions, so that a statement sent again is not judged a second time.
func ringOf(decisions []viewkeeper.Decision) map[int]*codec.IDs {
	slots := map[int]*codec.IDs{}
	for _, d := range decisions {
		if d.Code == viewkeeper.CodeIDReused || codec.IsDefaultID(d.StatementID) || d.SQL == "" {
			continue // the id is another decision's, none, or a dropping key that is not told
		}
		n := codec.Slot(d.Version)
		if s := slots[n]; s == nil || s.Version < codec.SlotStart(d.Version) {
			slots[n] = &codec.IDs{Slot: n} // a new round
		}
		slots[n].Version = d.Version
		slots[n].IDs = append(slots[n].IDs, codec.ID{
			ID: d.StatementID, Text: codec.HashText(viewkeeper.Submission{SQL: d.SQL}), Version: d.Version,
		})
	}
	return slots
}

// planRestore puts the export and the decisions after it together, and finds the
// version to go on from: above every decision, and not below what the group has
// finished, so that no statement is judged a second time.
func (c *topicsClient) planRestore(ctx context.Context, in *exportFile) (*restorePlan, error) {
	id, end, err := c.admin.EndOf(ctx, c.Definitions())
	if err != nil {
		return nil, kafkaFailure(err)
	}
	rows := map[viewkeeper.Name]viewkeeper.Row{}
	put := func(r viewkeeper.RowJSON) {
		rows[r.Name] = viewkeeper.Row{Name: r.Name, Version: r.Version, Definition: r.Definition}
	}
	for _, r := range in.Rows {
		put(r)
	}
	decisions, err := c.decisions(ctx)
	if err != nil {
		return nil, err
	}
	plan := &restorePlan{commit: &codec.Commit{Version: in.Version, EpochBase: in.Epoch, DefinitionsTopic: id}, ids: ringOf(decisions)}
	known := "" // the topic that the decisions' offsets count in, where an id says it
	last := int64(-1)
	for _, d := range decisions {
		plan.commit.EpochBase = max(plan.commit.EpochBase, d.Epoch)
		last = d.Offset
		if topic, _, ok := strings.Cut(d.StatementID, ":"); ok {
			known = topic
		}
		if d.Version <= in.Version {
			continue
		}
		plan.later++
		plan.commit.Version = max(plan.commit.Version, d.Version)
		// The version base that was in force when this was decided.
		plan.commit.VersionBase = d.Version - viewkeeper.Version(d.Offset) - 1
		for _, r := range d.Rows {
			put(r)
		}
	}
	if n := len(decisions); n > 0 && plan.later == 0 {
		plan.commit.VersionBase = decisions[n-1].Version - viewkeeper.Version(decisions[n-1].Offset) - 1
	}
	committed, ok, err := c.admin.Committed(ctx, string(c.Group()), c.Definitions())
	if err != nil {
		return nil, kafkaFailure(err)
	}
	if known != "" && known != id || ok && committed > end || last >= end {
		// The definitions topic was made anew too: its offset 0 is the next version.
		plan.commit.VersionBase = plan.commit.Version
	} else if ok {
		plan.commit.Version = max(plan.commit.Version, plan.commit.VersionBase+viewkeeper.Version(committed))
	}
	for _, r := range rows {
		plan.rows = append(plan.rows, r)
	}
	slices.SortFunc(plan.rows, func(x, y viewkeeper.Row) int { return x.Name.Compare(y.Name) })
	return plan, nil
}
