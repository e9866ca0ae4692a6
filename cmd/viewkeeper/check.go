package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

func (a *app) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check [-c TEXT | FILE...]",
		Short: "Say what the judge would say; nothing is written",
		Long: `check asks a node what the judge would say to statements, over the catalog that
the node has now. Nothing is written. A text with several statements is checked as
one change set, all or nothing, since each may build on the others; texts that
hold change sets of their own are checked one statement after the other, each over
the catalog as it is. Queries in a text are passed over.

It exits with 1 when anything would be refused, which makes it a step for a build.`,
		Example: `  viewkeeper check -c 'DROP VIEW late'
  viewkeeper check views/*.sql --server http://node-1:7410`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.check(cmd.Context(), args) },
	}
	a.use(cmd.Flags(), "server", "catalog", "command", "output", "author", "expect-version", "timeout")
	return cmd
}

func (a *app) check(ctx context.Context, files []string) error {
	node, err := a.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	if len(files) == 0 {
		script, err := a.readScript()
		if err != nil {
			return err
		}
		return a.checkScript(ctx, node, "", script)
	}
	if a.Command != "" {
		return usagef("give -c or files and not both")
	}
	found := error(nil)
	for _, file := range files {
		script, err := readFile(file)
		if err != nil {
			return err
		}
		if err := a.checkScript(ctx, node, file, script); err != nil {
			if exitCode(err) != exitRefused {
				return err
			}
			found = err
		}
	}
	return found
}

// checkScript checks one text. label names it when there are several.
func (a *app) checkScript(ctx context.Context, node *client, label, script string) error {
	var pieces []ddl.Piece
	sets := false
	for _, p := range ddl.Split(script) {
		if p.Query {
			continue
		}
		pieces = append(pieces, p)
		tokens, _ := ddl.Tokens(p.Text)
		sets = sets || len(tokens) > 0 && tokens[0].Is("begin")
	}
	if len(pieces) == 0 {
		return usagef("there is no DDL in %s", orText(label, "the text"))
	}
	if len(pieces) > 1 && !sets {
		// The set begins on the text's first line, so that lines stay the same.
		return a.checkOne(ctx, node, label, script, ddl.Piece{Text: changeSet(pieces)}, false)
	}
	found := error(nil)
	for _, p := range pieces {
		if err := a.checkOne(ctx, node, label, script, p, true); err != nil {
			if exitCode(err) != exitRefused {
				return err
			}
			found = err
		}
	}
	return found
}

func changeSet(pieces []ddl.Piece) string {
	var set strings.Builder
	set.WriteString("BEGIN;\n")
	for _, p := range pieces {
		set.WriteString(strings.TrimSpace(p.Text))
		if !endsStatement(p.Text) {
			set.WriteString("\n;")
		}
		set.WriteString("\n")
	}
	set.WriteString("COMMIT;\n")
	return set.String()
}

func endsStatement(text string) bool {
	tokens, _ := ddl.Tokens(text)
	return len(tokens) > 0 && tokens[len(tokens)-1].Kind == ddl.Semicolon
}

func (a *app) checkOne(ctx context.Context, node *client, label, script string, p ddl.Piece, placed bool) error {
	sub, err := a.submission(p.Text)
	if err != nil {
		return err
	}
	wait := a.startProgress("waiting for the judge")
	ans, err := node.check(ctx, sub)
	wait.stop()
	if err != nil {
		return err
	}
	if a.form() == formJSON {
		fmt.Fprintln(a.out, strings.TrimSpace(string(ans.raw)))
	} else {
		if label != "" {
			fmt.Fprintf(a.out, "%s: ", label)
		}
		if !placed {
			script, p.Offset = p.Text, 0
		}
		fmt.Fprint(a.out, "would be ")
		printDecision(a.out, ans.Decision, script, p.Offset)
	}
	if ans.Verdict == viewkeeper.Refused {
		return reported(exitRefused)
	}
	return nil
}

func orText(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
