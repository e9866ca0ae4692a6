package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// printDecision words a decision for people. script is the text that the
// statement was taken from and at its offset there, so that lines are the script's.
func printDecision(w io.Writer, d viewkeeper.Decision, script string, at int) {
	place := func(p *viewkeeper.Position) string {
		if p == nil {
			return ""
		}
		return fmt.Sprintf(" (line %d, column %d)", p.Line, p.Column)
	}
	switch d.Verdict {
	case viewkeeper.Refused:
		fmt.Fprintf(w, "refused: %s\n  %s\n", d.Code, d.Message)
		if d.Position != nil {
			printPlace(w, script, at+d.Position.Offset)
		}
	default:
		fmt.Fprintf(w, "%s at version %s", d.Verdict, d.Version)
		if d.Message != "" {
			fmt.Fprintf(w, ": %s", d.Message)
		}
		fmt.Fprintln(w)
	}
	would := ""
	if d.Verdict == viewkeeper.Refused {
		would = "would have "
	}
	for _, c := range d.Changed {
		fmt.Fprintf(w, "  %s%s %s%s\n", would, actionWords(c), c.Name, columnChange(c))
	}
	for _, b := range d.Broken {
		because := ""
		if b.RootCause != nil {
			because = fmt.Sprintf(" [because of %s]", *b.RootCause)
		}
		fmt.Fprintf(w, "  would break %s: %s%s%s\n", b.Name, b.Reason, place(b.Position), because)
	}
	for _, n := range d.Repaired {
		fmt.Fprintf(w, "  repaired %s\n", n)
	}
	for _, warn := range d.Warnings {
		fmt.Fprintf(w, "  warning %s: %s%s\n", warn.Code, warn.Message, place(warn.Position))
	}
}

func actionWords(c viewkeeper.Change) string {
	switch {
	case c.Action == viewkeeper.ActionOutputChanged:
		return "changed in its output:"
	case c.RenamedTo != nil:
		return fmt.Sprintf("renamed to %s:", *c.RenamedTo)
	}
	return string(c.Action)
}

// columnChange shows what differs between the columns before and after.
func columnChange(c viewkeeper.Change) string {
	if c.Action == viewkeeper.ActionCreated {
		if len(c.ColumnsAfter) == 0 {
			return "" // it did not come to that
		}
		return " (" + columnList(c.ColumnsAfter) + ")"
	}
	before := map[string]string{}
	for _, col := range c.ColumnsBefore {
		before[col.Name] = col.Type
	}
	var parts []string
	for _, col := range c.ColumnsAfter {
		was, had := before[col.Name]
		delete(before, col.Name)
		switch {
		case !had:
			parts = append(parts, "+"+col.Name+" "+col.Type)
		case was != col.Type:
			parts = append(parts, col.Name+" "+was+" → "+col.Type)
		}
	}
	if len(c.ColumnsAfter) > 0 {
		for _, col := range c.ColumnsBefore {
			if _, gone := before[col.Name]; gone {
				parts = append(parts, "-"+col.Name)
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

func columnList(columns []viewkeeper.Column) string {
	parts := make([]string, len(columns))
	for i, c := range columns {
		parts[i] = c.Name + " " + c.Type
	}
	return strings.Join(parts, ", ")
}

// printPlace shows a line of a text with a mark under a place in it.
func printPlace(w io.Writer, text string, offset int) {
	p := viewkeeper.PositionAt(text, offset)
	if p == nil || text == "" {
		return
	}
	start := strings.LastIndexByte(text[:p.Offset], '\n') + 1
	line, _, _ := strings.Cut(text[start:], "\n")
	// Tabs become one blank each, so that the mark stands under its place.
	fmt.Fprintf(w, "  line %d: %s\n", p.Line, strings.ReplaceAll(strings.TrimRight(line, "\r"), "\t", " "))
	indent := len(fmt.Sprintf("  line %d: ", p.Line)) + p.Column - 1
	fmt.Fprintf(w, "%s^\n", strings.Repeat(" ", indent))
}
