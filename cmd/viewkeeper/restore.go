package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/internal/restore"
	"github.com/viewkeeper/viewkeeper/internal/tablecopy"
)

func (a *app) restoreCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restore [DIR]",
		Short: "Put a lost or damaged table back",
		Long: `restore puts the catalog back into a table that was lost or damaged: from an export
(DIR is what 'viewkeeper export' wrote), from a node's copy (DIR is the --data-dir of a
node that does not run), from the decisions topic, or from what the table itself still
holds, which repairs it in place. What was decided after the source is added from the
decisions topic. Versions and epochs go on above all that was ever seen.

Without DIR and --from it writes nothing, and says what each source would give. With
DIR it finds out which of the two it is.

A table that is well is only written over with --force; a catalog of which something
is missing is only put back with --accept-loss, and the report says what. An owner may
run: it stops, and goes on from what was put back. A restore that died is run again.`,
		Example: `  viewkeeper restore --brokers kafka:9092 --catalog prod
  viewkeeper restore backup/ --brokers kafka:9092 --catalog prod
  viewkeeper restore --from decisions --brokers kafka:9092 --catalog prod`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := ""
			if len(args) > 0 {
				dir = args[0]
			}
			return a.restore(cmd.Context(), dir)
		},
	}
	a.use(cmd.Flags(), "brokers", "catalog", "from", "force", "accept-loss", "dry-run", "output", "timeout")
	return cmd
}

// toolOwner is who a fence, rows and a commit row are from that a command wrote.
const toolOwner = "viewkeeper-cli"

// restoreAttempts is how often a restore begins again because an owner took over.
const restoreAttempts = 3

func (a *app) restore(ctx context.Context, dir string) error {
	if err := a.checkRestore(dir); err != nil {
		return err
	}
	topics, err := a.openTopics()
	if err != nil {
		return err
	}
	defer topics.Close()
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	shown := a.startProgress("reading the topics")
	defer shown.stop()
	for attempt := 1; ; attempt++ {
		known, err := topics.restoring().Look(ctx)
		if err != nil {
			return kafkaFailure(err)
		}
		if a.DryRun || dir == "" && a.From == "" {
			shown.stop()
			return a.planRestores(ctx, topics, known, dir)
		}
		source, err := a.restoreSource(ctx, topics, known, restore.Kind(a.From), dir)
		if err != nil {
			return err
		}
		plan, err := restore.Make(ctx, known, source)
		if err != nil {
			return restoreFailure(err)
		}
		shown.stop()
		if plan.Report.From == restore.InTable && plan.Nothing(known) && len(plan.Report.Damage) == 0 {
			plan.Report.Notes = append(plan.Report.Notes, "there is nothing to repair, so nothing was written")
			return a.printRestore(plan.Report)
		}
		if err := plan.Allowed(known, a.Force, a.AcceptLoss); err != nil {
			return errors.Join(a.printRestore(plan.Report), refusedf("%w", err))
		}
		plan.Report.Epoch, err = topics.carryOut(ctx, known, plan)
		switch {
		case errors.Is(err, restore.ErrTakenOver) && attempt < restoreAttempts:
			continue
		case err != nil:
			return restoreFailure(err)
		}
		plan.Report.Written = true
		return a.printRestore(plan.Report)
	}
}

// checkRestore says what makes no sense about the command line.
func (a *app) checkRestore(dir string) error {
	for name, set := range map[string]bool{"force": a.Force, "accept-loss": a.AcceptLoss} {
		if set && a.source(name) != "flag" {
			return usagef("--%s is for one restore: give it on the command line, not by the %s", name, a.source(name))
		}
	}
	switch kind := restore.Kind(a.From); kind {
	case "":
	case restore.Export, restore.Copy:
		if dir == "" {
			return usagef("--from %s needs the directory of it", kind)
		}
	case restore.Decided, restore.InTable:
		if dir != "" {
			return usagef("--from %s takes no directory", kind)
		}
	}
	return nil
}

// restoring gives the topics to package restore.
func (c *topicsClient) restoring() *restore.Topics {
	return &restore.Topics{Settings: c.Settings, Names: c.Topics, Admin: c.admin}
}

// carryOut writes a plan.
func (c *topicsClient) carryOut(ctx context.Context, known *restore.Known, plan *restore.Plan) (epoch viewkeeper.Epoch, err error) {
	log, err := c.restoring().Log(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	return plan.Write(ctx, known, log, toolOwner, time.Now().UTC(), kafka.MaxRecordBytes)
}

// restoreSource opens a source. Without a kind the directory says it.
func (a *app) restoreSource(ctx context.Context, topics *topicsClient, known *restore.Known, kind restore.Kind, dir string) (*restore.Source, error) {
	if kind == "" {
		kind = restore.Copy
		if _, err := os.Stat(filepath.Join(dir, exportName)); err == nil {
			kind = restore.Export
		}
	}
	switch kind {
	case restore.Export:
		return a.exportSource(dir)
	case restore.Copy:
		return a.copySource(ctx, topics, known, dir)
	case restore.Decided:
		return restore.FromDecisions("topic " + topics.Decisions()), nil
	}
	s, err := restore.FromTable(restore.InTable, "topic "+topics.Table(), known.Table)
	return s, restoreFailure(err)
}

func (a *app) exportSource(dir string) (*restore.Source, error) {
	in, err := readExport(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, usagef("there is no %s in %s; 'viewkeeper export' writes it", exportName, dir)
	case err != nil:
		return nil, err
	}
	if in.Catalog != a.Catalog {
		return nil, usagef("the export in %s is of catalog %s and not of %s", dir, in.Catalog, a.Catalog)
	}
	return in.source(dir)
}

// copySource takes the newer of the copies in a node's data directory: the node sets
// one aside when the topic that it is of was lost.
func (a *app) copySource(ctx context.Context, topics *topicsClient, known *restore.Known, dir string) (*restore.Source, error) {
	var best *restore.Source
	var meta tablecopy.Meta
	var problems []error
	var places []string
	for _, d := range []string{filepath.Join(dir, a.Catalog), dir} {
		places = append(places, tablecopy.Dir(d), tablecopy.Old(tablecopy.Dir(d)))
	}
	if _, err := os.Stat(filepath.Join(dir, "CURRENT")); err == nil {
		places = append(places, dir) // the copy itself
	}
	for _, place := range places {
		m, records, err := tablecopy.Read(place)
		if errors.Is(err, tablecopy.ErrNone) {
			continue
		}
		var s *restore.Source
		if err == nil {
			t := restore.NewTable()
			for _, r := range records {
				t.Add(r.Offset, r.Key, r.Value, nil)
			}
			t.ReadTo()
			s, err = restore.FromTable(restore.Copy, place, t)
		}
		switch {
		case err != nil:
			problems = append(problems, err)
		case best == nil || s.Version > best.Version:
			best, meta = s, m
		}
	}
	switch {
	case best == nil && problems != nil:
		return nil, refusedf("%w", errors.Join(problems...))
	case best == nil:
		return nil, usagef("there is no %s in %s, which 'viewkeeper export' writes, and no node's copy of the table", exportName, dir)
	}
	cluster, _, err := topics.admin.Cluster(ctx)
	if err != nil {
		return nil, kafkaFailure(err)
	}
	if (cluster != meta.Cluster || best.DefinitionsTopic != known.DefinitionsTopic) && !a.Force {
		return nil, refusedf("the copy in %s is of cluster %s and of a catalog whose definitions topic has the id %s; here it is cluster %s and id %s. If it is this catalog's all the same, say --force",
			best.Place, meta.Cluster, orText(best.DefinitionsTopic, "(none)"), cluster, known.DefinitionsTopic)
	}
	return best, nil
}

func restoreFailure(err error) error {
	var newer *restore.NewerFormatError
	var large *restore.TooLargeError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, restore.ErrTakenOver), errors.As(err, &newer), errors.As(err, &large):
		return refusedf("%w", err)
	}
	return kafkaFailure(err)
}

// planRestores says what each source would give, and writes nothing.
func (a *app) planRestores(ctx context.Context, topics *topicsClient, known *restore.Known, dir string) error {
	type choice struct {
		restore.Report
		Problem string `json:"problem,omitempty"`
	}
	kinds := []restore.Kind{restore.InTable, restore.Decided}
	switch {
	case a.From != "":
		kinds = []restore.Kind{restore.Kind(a.From)}
	case dir != "":
		kinds = []restore.Kind{""}
	}
	var all []choice
	for _, kind := range kinds {
		source, err := a.restoreSource(ctx, topics, known, kind, dir)
		if err != nil && len(kinds) == 1 {
			return err
		}
		var plan *restore.Plan
		if err == nil {
			plan, err = restore.Make(ctx, known, source)
		}
		c := choice{Report: restore.Report{Catalog: a.Catalog, From: kind}}
		if err != nil {
			c.Problem = err.Error()
		} else {
			c.Report = plan.Report
			if err := plan.Allowed(known, a.Force, a.AcceptLoss); err != nil {
				c.Problem = err.Error()
			}
		}
		all = append(all, c)
	}
	if a.Output == formJSON { // else text, as the other commands that do something print
		return a.printJSON(map[string]any{"sources": all})
	}
	fmt.Fprintf(a.out, "nothing is written: this is what would be\n")
	for _, c := range all {
		if c.Place != "" {
			a.describeRestore(c.Report)
		}
		if c.Problem != "" {
			fmt.Fprintf(a.out, "  refused: %s\n", c.Problem)
		}
	}
	return nil
}

func (a *app) printRestore(r restore.Report) error {
	if a.Output == formJSON { // else text, as the other commands that do something print
		return a.printJSON(r)
	}
	a.describeRestore(r)
	return nil
}

// describeRestore prints a report for people.
func (a *app) describeRestore(r restore.Report) {
	did := "would restore"
	if r.Written {
		did = "restored"
	}
	fmt.Fprintf(a.out, "%s %d definitions of catalog %s at version %s (the %s had version %s, %d decisions came after it)\n", did, r.Definitions, r.Catalog, r.Version, r.From, r.SourceVersion, r.Decisions)
	fmt.Fprintf(a.out, "  from %s; %d statement ids are known; %d definitions of the table change\n", r.Place, r.StatementIDs, r.Changed)
	for _, d := range r.Damage {
		fmt.Fprintf(a.out, "  damage: %s\n", d)
	}
	if r.JudgedAgain > 0 {
		fmt.Fprintf(a.out, "  %d statements that were not answered are judged again\n", r.JudgedAgain)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(a.out, "  note: %s\n", n)
	}
	for _, m := range r.Missing {
		fmt.Fprintf(a.out, "  missing: %s\n", m)
	}
	for _, l := range r.Lost {
		text := oneLine(l.SQL)
		if text == "" {
			text = "drop of " + l.Key
		}
		fmt.Fprintf(a.out, "  lost: offset %d, version %s, id %s: %s\n", l.Offset, l.Version, l.ID, text)
	}
}
