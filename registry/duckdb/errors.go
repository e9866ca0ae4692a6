package duckdb

import (
	"errors"
	"fmt"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// maxCandidates is how many lines of candidates a message keeps.
const maxCandidates = 3

// tidy makes the engine's message one that fits in a sentence: its echo of the
// text is cut, as are lists of candidates (of + there are 45), and lines are
// joined. What it guesses was meant stays.
func tidy(message string) string {
	if i := strings.Index(message, "\n\nLINE "); i >= 0 {
		message = message[:i]
	}
	var out []string
	candidates := -1
	for _, line := range strings.Split(message, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "LINE ") || line == "^":
		case strings.HasPrefix(line, "Candidate functions:") || strings.HasPrefix(line, "Candidates:"):
			candidates = 0
			out = append(out, line)
		case candidates >= 0:
			if candidates++; candidates <= maxCandidates {
				out = append(out, line+",")
			}
		default:
			out = append(out, line)
		}
	}
	message = strings.TrimSuffix(strings.Join(out, " "), ",")
	if candidates > maxCandidates {
		message += fmt.Sprintf(" and %d more", candidates-maxCandidates)
	}
	const longest = 600
	if len(message) > longest {
		message = strings.ToValidUTF8(message[:longest], "") + "…"
	}
	return message
}

// refusal sorts an engine's error: a mistake of the text is a PlanError, and
// anything else is returned as the Go error that it is. An engine that ran out of
// memory or found itself broken is lost: see [registry.LostError].
func (g *gate) refusal(err error, text string) (*registry.PlanError, error) {
	var e *engineError
	if !errors.As(err, &e) {
		return nil, err
	}
	switch e.Type {
	case "Out of Memory", "FATAL", "Fatal", "INTERNAL", "Internal", "Interrupt", "INTERRUPT":
		return nil, &registry.LostError{Detail: e.Type + ": " + tidy(e.Message)}
	case "TransactionContext", "Transaction Context":
		return nil, err
	}
	at := e.Position
	if at > len(text) {
		at = -1
	}
	message := g.lake.hide(tidy(e.Message))
	if e.Type == "Permission" {
		message += "; files are read from the lake folders, and named in quotes"
	}
	return &registry.PlanError{Code: viewkeeper.CodeBind, Message: message, At: at}, nil
}
