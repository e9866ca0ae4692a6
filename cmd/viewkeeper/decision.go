package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/viewkeeper/viewkeeper"
)

func (a *app) decisionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "decision ID",
		Short: "Show what became of a statement",
		Long: `decision shows what became of the statement with an id. It exits with 0 when it
was accepted or unchanged, 1 when it was refused or was never seen, 4 when it was
seen and is not decided yet.`,
		Example: "  viewkeeper decision 3f0c5b1e9a7d42e8b6c1d0f2a3948576",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.decision(cmd.Context(), args[0]) },
	}
	a.use(cmd.Flags(), "server", "brokers", "catalog", "output", "timeout")
	return cmd
}

func (a *app) decision(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	d, err := a.findDecision(ctx, id)
	if err != nil {
		return err
	}
	if a.form() == formJSON {
		err = a.printJSON(d)
	} else {
		printDecision(a.out, *d, d.SQL, 0)
	}
	if err == nil && d.Verdict == viewkeeper.Refused {
		return reported(exitRefused)
	}
	return err
}

func (a *app) findDecision(ctx context.Context, id string) (*viewkeeper.Decision, error) {
	if a.direct() {
		topics, err := a.openTopics()
		if err != nil {
			return nil, err
		}
		defer topics.Close()
		all, err := topics.decisions(ctx)
		for _, d := range all {
			if d.StatementID == id {
				d = d.ForClient()
				return &d, nil
			}
		}
		if err == nil {
			err = refusedf("there is no decision with statement id %s on the decisions topic (yet)", id)
		}
		return nil, err
	}
	node, err := a.client()
	if err != nil {
		return nil, err
	}
	resp, err := node.send(ctx, http.MethodGet, "/v1/statements/"+segment(id), nil, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusAccepted:
		return nil, timeoutf("statement %s was seen and is not decided yet", id)
	case resp.StatusCode != http.StatusOK:
		return nil, problem(resp.StatusCode, raw)
	}
	d := &viewkeeper.Decision{}
	return d, json.NewDecoder(bytes.NewReader(raw)).Decode(d)
}

// segment writes any text as one segment of a path. A dot that stands alone, or two,
// would be taken for a direction.
func segment(text string) string {
	if text == "." || text == ".." {
		return strings.ReplaceAll(text, ".", "%2E")
	}
	return url.PathEscape(text)
}
