package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/server"
)

func (a *app) sqlCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sql [-c TEXT | -f FILE]",
		Short: "Send DDL and queries, from an argument, a file, the standard input or a prompt",
		Long: `sql sends SQL text to a node, one statement or query after the other: DDL is
submitted and its decision printed, a query is answered. A query sees what the
statements before it in the same text made. The text stops at the first thing
that is refused or fails; what came before it stands.

Without -c and -f it reads the standard input; on a terminal that is a prompt with
history, completion of names and keywords, and the commands \d, \d NAME, \timing
and \q.

With --brokers DDL goes straight to the catalog's topics, without a node: the default
--wait node then is the same as decided, and says nothing of who has it; --wait fleet
asks the nodes topic.`,
		Example: `  viewkeeper sql -c 'CREATE VIEW late AS SELECT * FROM flights WHERE dep_delay > 60'
  viewkeeper sql -c 'SELECT carrier, count(*) FROM late GROUP BY ALL' --output csv
  viewkeeper sql -f views.sql --reason 'the release of May' --wait fleet
  echo 'DROP VIEW late' | viewkeeper sql --brokers kafka:9092 --catalog prod`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.sql(cmd.Context()) },
	}
	a.use(cmd.Flags(), "server", "brokers", "catalog", "command", "file", "output", "author", "reason", "timeout", "wait", "id", "expect-version")
	return cmd
}

func (a *app) sql(ctx context.Context) error {
	session, err := a.newSession()
	if err != nil {
		return err
	}
	defer session.close()
	if a.Command == "" && a.File == "" && isTerminal(a.in) && isTerminal(a.out) {
		return a.prompt(session)
	}
	script, err := a.readScript()
	if err != nil {
		return err
	}
	return session.script(ctx, script)
}

// readScript reads the text of -c, of -f or of the standard input.
func (a *app) readScript() (string, error) {
	switch {
	case a.Command != "" && a.File != "":
		return "", usagef("give -c or -f and not both")
	case a.Command != "":
		return a.Command, nil
	case a.File != "" && a.File != "-":
		return readFile(a.File)
	}
	text, err := io.ReadAll(a.in)
	if err != nil {
		return "", fmt.Errorf("reading the standard input: %w", err)
	}
	return string(text), nil
}

func readFile(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", usagef("reading SQL: %w", err)
	}
	return string(text), nil
}

// submitter takes statements: a node, or the topics themselves.
type submitter interface {
	submit(ctx context.Context, sub viewkeeper.Submission, query url.Values) (*answer, error)
}

// session sends the pieces of texts one after the other.
type session struct {
	app  *app
	door submitter
	// node answers queries; nil with --brokers.
	node *client
	// seen is the version of the last decision, which the next query asks for: what
	// a session wrote it reads.
	seen   viewkeeper.Version
	timing bool
	closer io.Closer
}

func (a *app) newSession() (*session, error) {
	if a.direct() {
		door, err := a.openTopics()
		if err != nil {
			return nil, fmt.Errorf("%w; nothing was written", err)
		}
		return &session{app: a, door: door, closer: door}, nil
	}
	node, err := a.client()
	if err != nil {
		return nil, err
	}
	return &session{app: a, door: node, node: node}, nil
}

func (s *session) close() {
	if s.closer != nil {
		// Everything that was written is acked by now.
		_ = s.closer.Close()
	}
}

// script sends a text and stops at the first piece that is refused or fails.
func (s *session) script(ctx context.Context, text string) error {
	pieces := ddl.Split(text)
	if len(pieces) == 0 {
		return usagef("there is no SQL in the text")
	}
	statements := 0
	for _, p := range pieces {
		if !p.Query {
			statements++
		}
	}
	if statements != 1 && (s.app.ID != "" || s.app.ExpectVersion != "") {
		return usagef("--id and --expect-version are for a text with one statement; this one has %d", statements)
	}
	for i, p := range pieces {
		err := s.piece(ctx, text, p)
		if err == nil {
			continue
		}
		if len(pieces) > 1 {
			at := viewkeeper.PositionAt(text, p.Offset)
			fmt.Fprintf(s.app.err, "viewkeeper: stopped at number %d of %d, line %d; %s\n", i+1, len(pieces), at.Line, standing(i, len(pieces)-i-1))
		}
		return err
	}
	return nil
}

// standing says what became of the rest of a script that stopped.
func standing(before, after int) string {
	var parts []string
	if before > 0 {
		parts = append(parts, fmt.Sprintf("the %d before it stand", before))
	}
	if after > 0 {
		parts = append(parts, fmt.Sprintf("the %d after it were not sent", after))
	}
	return strings.Join(parts, ", ")
}

// piece sends one statement or query of a text.
func (s *session) piece(ctx context.Context, text string, p ddl.Piece) error {
	start := time.Now()
	var err error
	if p.Query {
		err = s.query(ctx, text, p)
	} else {
		err = s.statement(ctx, text, p)
	}
	if s.timing {
		fmt.Fprintf(s.app.err, "%.1f ms\n", float64(time.Since(start).Microseconds())/1000)
	}
	return err
}

func (s *session) statement(ctx context.Context, text string, p ddl.Piece) error {
	a := s.app
	sub, err := a.submission(p.Text)
	if err != nil {
		return err
	}
	wait := s.app.startProgress("waiting for the decision on statement %s", sub.ID)
	defer wait.stop()
	// The server keeps the time; the client's own is a little longer, so that the
	// answer with the statement's id is there first.
	ctx, cancel := context.WithTimeout(ctx, a.Timeout+5*time.Second)
	defer cancel()
	answer, err := s.door.submit(ctx, sub, url.Values{"wait": {a.Wait}, "timeout": {a.Timeout.String()}})
	wait.stop()
	if err != nil {
		if exitCode(err) == exitTimeout && !strings.Contains(err.Error(), sub.ID) {
			err = timeoutf("%w\nstatement id: %s; asking again with --id and the same text is safe", err, sub.ID)
		}
		return err
	}
	return s.report(answer, text, p.Offset)
}

// submission makes a statement with what the flags say of it. It has an id before
// it is sent, so that it can be asked for whatever becomes of the answer.
func (a *app) submission(sql string) (viewkeeper.Submission, error) {
	sub := viewkeeper.Submission{SQL: sql, ID: a.ID, Author: a.Author, Reason: a.Reason, Offset: -1}
	if sub.ID == "" {
		sub.ID = server.NewStatementID()
	}
	if a.ExpectVersion != "" {
		v, err := viewkeeper.ParseVersion(a.ExpectVersion)
		if err != nil {
			return sub, usagef("--expect-version: %w", err)
		}
		sub.ExpectVersion = &v
	}
	return sub, nil
}

// report prints a decision and gives the exit status that it stands for.
func (s *session) report(ans *answer, text string, offset int) error {
	a := s.app
	if a.form() == formJSON {
		if _, err := fmt.Fprintln(a.out, strings.TrimSpace(string(ans.raw))); err != nil {
			return err
		}
	} else {
		printDecision(a.out, ans.Decision, text, offset)
	}
	if ans.Verdict == viewkeeper.Refused {
		return reported(exitRefused)
	}
	s.seen = max(s.seen, ans.Version)
	if ans.waitErr != nil {
		return timeoutf("statement %s is %s at version %s, and who has it can't be told: %w", ans.StatementID, ans.Verdict, ans.Version, ans.waitErr)
	}
	if len(ans.Missing) > 0 {
		return timeoutf("statement %s is %s at version %s and not everywhere yet: %s; 'viewkeeper wait %s' waits on",
			ans.StatementID, ans.Verdict, ans.Version, strings.Join(ans.Missing, ", "), ans.Version)
	}
	return nil
}

func (s *session) query(ctx context.Context, text string, p ddl.Piece) error {
	if s.node == nil {
		return usagef("a query needs a node that answers it; give --server in place of --brokers")
	}
	wait := s.app.startProgress("waiting for the answer")
	defer wait.stop()
	err := s.app.runQuery(ctx, s.node, p.Text, s.seen, wait.stop)
	var pe *problemError
	if errors.As(err, &pe) && pe.Position != nil {
		// The message first, then its place: whoever prints the error prints both.
		var place strings.Builder
		printPlace(&place, text, p.Offset+pe.Position.Offset)
		pe.text = strings.TrimRight(pe.text+"\n"+place.String(), "\n")
	}
	return err
}
