package main

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

func (a *app) historyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "history [NAME]",
		Short: "List the decisions, all or those about one definition",
		Long: `history lists decisions, oldest first: what was submitted by whom, and the answer.
With a name only those about that definition, refused ones among them. The JSON form
has each statement's text and every row that it changed.`,
		Example: `  viewkeeper history late
  viewkeeper history --limit 20 --output json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var name viewkeeper.Name
			if len(args) == 1 {
				var err error
				if name, err = viewkeeper.ParseName(args[0]); err != nil {
					return usagef("%w", err)
				}
			}
			return a.history(cmd.Context(), name)
		},
	}
	a.use(cmd.Flags(), "server", "brokers", "catalog", "output", "timeout", "since", "limit")
	return cmd
}

func (a *app) history(ctx context.Context, name viewkeeper.Name) error {
	decisions, completeFrom, err := a.readHistory(ctx, name)
	if err != nil {
		return err
	}
	if a.Limit > 0 {
		decisions = decisions[max(0, len(decisions)-a.Limit):]
	}
	if a.form() == formJSON {
		return a.printJSON(map[string]any{"decisions": decisions, "complete_from": completeFrom})
	}
	rows := [][]string{}
	for _, d := range decisions {
		rows = append(rows, []string{d.Version.String(), d.At.Format("2006-01-02 15:04:05"), string(d.Verdict), string(d.Code), d.Author, shortSQL(d), d.Reason})
	}
	return a.printRows([]string{"version", "at", "verdict", "code", "author", "statement", "reason"}, rows)
}

func (a *app) readHistory(ctx context.Context, name viewkeeper.Name) (all []viewkeeper.Decision, completeFrom viewkeeper.Version, err error) {
	all = []viewkeeper.Decision{}
	if a.direct() {
		topics, err := a.openTopics()
		if err != nil {
			return nil, 0, err
		}
		defer topics.Close()
		ctx, cancel := context.WithTimeout(ctx, a.Timeout)
		defer cancel()
		read, err := topics.decisions(ctx)
		for _, d := range read {
			if uint64(d.Version) > a.Since && (name.IsZero() || about(d, name)) {
				all = append(all, d)
			}
		}
		return all, 0, err
	}
	query := url.Values{"since": {strconv.FormatUint(a.Since, 10)}}
	if !name.IsZero() {
		query.Set("name", name.String())
	}
	err = a.pages(ctx, "/v1/decisions", query, func(raw []byte) (url.Values, error) {
		var page struct {
			Decisions    []viewkeeper.Decision `json:"decisions"`
			CompleteFrom viewkeeper.Version    `json:"complete_from"`
			Next         *viewkeeper.Version   `json:"next"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Decisions...)
		completeFrom = page.CompleteFrom
		if page.Next == nil {
			return nil, nil
		}
		return url.Values{"since": {page.Next.String()}}, nil
	})
	return all, completeFrom, err
}

// about reports whether a decision is about a definition: it changed it, would have,
// or was refused before that could be said.
func about(d viewkeeper.Decision, name viewkeeper.Name) bool {
	return slices.ContainsFunc(d.Changed, func(c viewkeeper.Change) bool {
		return c.Action != viewkeeper.ActionOutputChanged && c.Name == name || c.RenamedTo != nil && *c.RenamedTo == name
	}) || slices.Contains(d.Dropped, name) || slices.Contains(ddl.Targets(d.SQL), name)
}

func shortSQL(d viewkeeper.Decision) string {
	if d.SQL == "" {
		return "(tombstone)"
	}
	return strings.Join(strings.Fields(d.SQL), " ")
}
