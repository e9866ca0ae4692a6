package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/internal/restore"
)

func (a *app) topicsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topics create|check|adopt",
		Short: "Create, check or adopt the catalog's topics",
		Long: `topics works on the four topics of a catalog: definitions, table, decisions and
nodes. Only 'topics create' and 'dev' create topics; nothing ever changes the
settings of one that is there.`,
		Example: `  viewkeeper topics create --brokers kafka:9092 --catalog prod
  viewkeeper topics check --brokers kafka:9092 --catalog prod`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usagef("say what to do: topics create, topics check or topics adopt")
		},
	}
	create := &cobra.Command{
		Use:   "create",
		Short: "Create the topics that are missing, with the right settings",
		Long: `create makes those of the catalog's topics that are missing, with the settings that
they need: three replicas where there are three brokers. A topic that is there is
left as it is; 'topics check' says what is wrong with it.`,
		Example: "  viewkeeper topics create --brokers kafka:9092 --catalog prod",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.createTopics(cmd.Context()) },
	}
	check := &cobra.Command{
		Use:   "check",
		Short: "Name every wrong setting of the topics, and where it is set",
		Long: `check compares the topics' settings with those that the catalog needs, and names
every wrong one with where it is set. It exits with 1 when anything was found, and
changes nothing.`,
		Example: "  viewkeeper topics check --brokers kafka:9092 --catalog prod",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.checkTopics(cmd.Context()) },
	}
	adopt := &cobra.Command{
		Use:   "adopt",
		Short: "Accept a definitions topic that is not the one known",
		Long: `adopt tells the catalog that its definitions topic was made anew and that this is
meant. Definitions, versions and epochs go on from where the table has them;
statements that were in the old topic and not judged are lost. The table must be
whole: a lost table is put back with 'viewkeeper restore'.

It writes a fence and a commit row to the table, so an owner that is alive stops
and takes over again under the new topic.`,
		Example: "  viewkeeper topics adopt --brokers kafka:9092 --catalog prod",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.adoptTopics(cmd.Context()) },
	}
	for _, sub := range []*cobra.Command{create, check, adopt} {
		a.use(sub.Flags(), "brokers", "catalog", "output", "timeout")
		cmd.AddCommand(sub)
	}
	return cmd
}

func (a *app) createTopics(ctx context.Context) error {
	topics, err := a.openTopics()
	if err != nil {
		return err
	}
	defer topics.Close()
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	made, err := topics.admin.CreateTopics(ctx, topics.Topics)
	if err != nil {
		return kafkaFailure(err)
	}
	state := map[string]string{}
	for _, name := range made {
		state[name] = "created"
	}
	rows := [][]string{}
	for _, name := range topics.All() {
		rows = append(rows, []string{name, orText(state[name], "was there")})
	}
	return a.printRows([]string{"topic", "state"}, rows)
}

func (a *app) checkTopics(ctx context.Context) error {
	topics, err := a.openTopics()
	if err != nil {
		return err
	}
	defer topics.Close()
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	problems, err := topics.admin.CheckTopics(ctx, topics.Topics, kafka.CheckOptions{})
	if err != nil {
		return kafkaFailure(err)
	}
	switch {
	case a.form() == formJSON:
		if problems == nil {
			problems = []kafka.Problem{}
		}
		err = a.printJSON(map[string]any{"problems": problems})
	case len(problems) == 0:
		_, err = fmt.Fprintf(a.out, "the topics of catalog %s are as they must be\n", a.Catalog)
	default:
		for _, p := range problems {
			weight := "advice"
			if p.Fatal || p.Missing {
				weight = "wrong"
			}
			fmt.Fprintf(a.out, "%s: %s\n", weight, p)
		}
	}
	if err == nil && len(problems) > 0 {
		return reported(exitRefused)
	}
	return err
}

func (a *app) adoptTopics(ctx context.Context) error {
	topics, err := a.openTopics()
	if err != nil {
		return err
	}
	defer topics.Close()
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	id, err := topics.admin.TopicID(ctx, topics.Definitions())
	if err != nil {
		return kafkaFailure(err)
	}
	known := &restore.Known{Catalog: a.Catalog, DefinitionsTopic: id}
	if known.Table, err = topics.restoring().Table(ctx); err != nil {
		return kafkaFailure(err)
	}
	commit := known.Table.Fold.Commit()
	switch {
	case commit == nil:
		return refusedf("the table of catalog %s has no commit row, so there is nothing to go on from; 'viewkeeper restore' puts a lost table back", a.Catalog)
	case commit.DefinitionsTopic == id:
		_, err := fmt.Fprintf(a.out, "the topic %s is the one known; nothing to adopt\n", topics.Definitions())
		return err
	}
	plan, err := restore.Adopt(known)
	if err != nil {
		return restoreFailure(err)
	}
	if _, err := topics.carryOut(ctx, known, plan); err != nil {
		return restoreFailure(err)
	}
	_, err = fmt.Fprintf(a.out, "adopted %s (id %s); versions go on from %s\n", topics.Definitions(), id, commit.Version)
	return err
}
