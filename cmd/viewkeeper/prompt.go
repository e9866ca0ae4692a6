package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/peterh/liner"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

const promptHelp = `  \d           list the definitions
  \d NAME      describe one
  \timing      show how long each statement takes, or no longer
  \q           leave (so does Ctrl-D)
They are commands at the beginning of any line, also of one in the middle of a statement.
Everything else is SQL and ends with a semicolon. Ctrl-C gives up what is typed, or
the query that runs.
`

// prompt reads statements from a terminal until its end.
func (a *app) prompt(s *session) error {
	// Ctrl-C gives up a line or a query, and not the process as main has it: also in
	// the moments when neither liner nor a query listens for it.
	signal.Reset(os.Interrupt)
	swallowed := make(chan os.Signal, 1)
	signal.Notify(swallowed, os.Interrupt)
	defer signal.Stop(swallowed)
	line := liner.NewLiner()
	defer line.Close()
	line.SetCtrlCAborts(true)
	line.SetMultiLineMode(true)
	names := &completer{app: a, node: s.node}
	line.SetWordCompleter(names.complete)
	save := loadHistory(line)
	defer save()
	fmt.Fprintf(a.out, "viewkeeper at %s. \\? for help.\n", a.where())
	names.refresh()
	var text strings.Builder
	for {
		prompt := "vk> "
		if text.Len() > 0 {
			prompt = "..> "
		}
		input, err := line.Prompt(prompt)
		switch {
		case errors.Is(err, liner.ErrPromptAborted):
			text.Reset()
			continue
		case errors.Is(err, io.EOF):
			fmt.Fprintln(a.out)
			return nil
		case err != nil:
			return fmt.Errorf("reading the terminal: %w", err)
		}
		if command := strings.TrimSpace(input); strings.HasPrefix(command, `\`) && !inText(text.String()) {
			line.AppendHistory(command)
			if a.promptCommand(s, command) {
				return nil
			}
			continue
		}
		if text.Len() == 0 && strings.TrimSpace(input) == "" {
			continue
		}
		text.WriteString(input)
		text.WriteString("\n")
		if ddl.Incomplete(text.String()) {
			continue
		}
		script := text.String()
		text.Reset()
		line.AppendHistory(strings.Join(strings.Fields(script), " "))
		a.interruptible(func(ctx context.Context) error { return s.script(ctx, script) })
		if slices.ContainsFunc(ddl.Split(script), func(p ddl.Piece) bool { return !p.Query }) {
			names.refresh()
		}
	}
}

// inText reports whether what is typed so far ends inside of a literal, a quoted name or
// a comment, where a backslash begins no command: a semicolon would not end it.
func inText(typed string) bool { return typed != "" && ddl.Incomplete(typed+";") }

// promptCommand runs a command that begins with a backslash, and reports whether it
// was the one to leave.
func (a *app) promptCommand(s *session, command string) (leave bool) {
	word, rest, _ := strings.Cut(command, " ")
	rest = strings.TrimSuffix(strings.TrimSpace(rest), ";")
	switch strings.TrimSuffix(word, ";") {
	case `\q`, `\quit`:
		return true
	case `\?`, `\h`, `\help`:
		fmt.Fprint(a.out, promptHelp)
	case `\timing`:
		s.timing = !s.timing
		fmt.Fprintf(a.out, "timing is %s\n", map[bool]string{true: "on", false: "off"}[s.timing])
	case `\d`:
		if s.node == nil {
			fmt.Fprintln(a.err, "definitions are asked from a node; start the prompt with --server")
			return false
		}
		a.interruptible(func(ctx context.Context) error {
			if rest != "" {
				return a.describe(ctx, rest)
			}
			cmd := a.viewsCommand()
			cmd.SetContext(ctx)
			return cmd.RunE(cmd, nil)
		})
	default:
		fmt.Fprintf(a.err, "%s is no command; \\? lists them\n", word)
	}
	return false
}

// interruptible runs f so that Ctrl-C ends it and not the prompt, and prints its
// error.
func (a *app) interruptible(f func(context.Context) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := f(ctx)
	var quiet *failure
	if err != nil && (!errors.As(err, &quiet) || !quiet.quiet) {
		fmt.Fprintf(a.err, "%v\n", err)
	}
}

func (a *app) where() string {
	if a.direct() {
		return "the topics of catalog " + a.Catalog
	}
	return a.Server
}

// loadHistory reads the history of former prompts; save writes it back. That it
// can't be read or kept is no reason to do without a prompt.
func loadHistory(line *liner.State) (save func()) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return func() {}
	}
	path := filepath.Join(dir, "viewkeeper", "history")
	if f, err := os.Open(path); err == nil {
		_, _ = line.ReadHistory(f)
		f.Close()
	}
	return func() {
		if os.MkdirAll(filepath.Dir(path), 0o700) != nil {
			return
		}
		if f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600); err == nil {
			_, _ = line.WriteHistory(f)
			f.Close()
		}
	}
}

// completer completes the last word of a line: first the names of definitions, of
// what they read and of their columns, then keywords.
type completer struct {
	app   *app
	node  *client
	words []string
}

// keywords are those that a person types here.
func keywords() []string {
	return strings.Fields(`ALTER AND AS ASC BEGIN BETWEEN BY CASCADE CASE COMMENT COMMIT COUNT CREATE CROSS DESC
DESCRIBE DISTINCT DROP ELSE END EXCEPT EXISTS EXPLAIN FROM FULL GROUP HAVING IF IN INNER INTERSECT INTO IS JOIN
LATERAL LEFT LIKE LIMIT MATERIALIZED NATURAL NOT NULL ON OR ORDER OUTER OVER PARTITION PIVOT QUALIFY RECURSIVE
RENAME REPLACE RESTRICT RIGHT SELECT SHOW SUMMARIZE TABLE TABLES THEN TO UNION UNPIVOT USING VALUES VIEW WHEN
WHERE WINDOW WITH`)
}

// refresh asks the node for names. A node that does not answer now leaves the words
// as they were.
func (c *completer) refresh() {
	var words []string
	if c.node != nil {
		ctx, cancel := context.WithTimeout(context.Background(), c.app.Timeout)
		defer cancel()
		var page struct {
			Definitions []definitionJSON `json:"definitions"`
		}
		if _, err := c.node.get(ctx, "/v1/definitions", nil, &page); err != nil {
			return
		}
		for _, d := range page.Definitions {
			words = append(words, d.Name.String())
			if d.Name.Schema == viewkeeper.DefaultSchema {
				words = append(words, d.Name.View)
			}
			for _, r := range d.Reads {
				words = append(words, r.Name, strings.TrimPrefix(r.Name, viewkeeper.DefaultSchema+"."))
			}
			for _, col := range d.Columns {
				words = append(words, col.Name)
			}
		}
	}
	slices.Sort(words)
	c.words = append(slices.Compact(words), keywords()...)
}

// complete is liner's WordCompleter: the line, and the cursor's place in runes.
func (c *completer) complete(line string, pos int) (head string, candidates []string, tail string) {
	runes := []rune(line)
	start := pos
	for start > 0 && !strings.ContainsRune(" \t(),;=<>+-*/", runes[start-1]) {
		start--
	}
	word := string(runes[start:pos])
	for _, w := range c.words {
		if len(word) > 0 && len(w) >= len(word) && strings.EqualFold(w[:len(word)], word) {
			if word == strings.ToLower(word) {
				w = strings.ToLower(w)
			}
			candidates = append(candidates, w)
		}
	}
	return string(runes[:start]), candidates, string(runes[pos:])
}
