package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// Figure is one line of the table: a number, what it is compared with, and the target.
type Figure struct {
	ID   string `json:"id"`   // P1
	What string `json:"what"` // what was measured, in a few words
	// Got and Baseline are in Unit; Baseline is 0 when there is none. The units ns,
	// µs, ms, s, MB, B, × and the empty one are known to the table, others are put behind.
	Got      float64 `json:"got"`
	Baseline float64 `json:"baseline,omitempty"`
	Unit     string  `json:"unit"`
	Against  string  `json:"against,omitempty"` // what the baseline is
	// Limit is the target as a number in Unit, and Target as the table says it: "≤ bare
	// hop + 2 ms". A figure without a Target is there to be known.
	Limit   float64 `json:"limit,omitempty"`
	AtLeast bool    `json:"at_least,omitempty"`
	Target  string  `json:"target,omitempty"`
	Note    string  `json:"note,omitempty"` // printed below the table
}

// Met reports whether the target was reached; a figure without one has nothing to miss.
func (f Figure) Met() bool {
	switch {
	case f.Target == "":
		return true
	case f.AtLeast:
		return f.Got >= f.Limit
	}
	return f.Got <= f.Limit
}

// compared says how far Got is from Baseline: as a difference and as a ratio.
func (f Figure) compared() string {
	if f.Baseline == 0 {
		return "–"
	}
	ratio := fmt.Sprintf("%s ×", digits(f.Got/f.Baseline))
	if f.Unit == "×" {
		return ratio
	}
	sign := "+"
	if f.Got < f.Baseline {
		sign = "−"
	}
	return fmt.Sprintf("%s, %s%s", ratio, sign, quantity(math.Abs(f.Got-f.Baseline), f.Unit))
}

// quantity is a number with its unit.
func quantity(v float64, unit string) string {
	if unit == "" {
		return digits(v)
	}
	if strings.HasPrefix(unit, "/") {
		return digits(v) + unit
	}
	return digits(v) + " " + unit
}

// digits has three significant digits, and two of what is small.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a >= 100 || a == math.Trunc(a):
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a < 0.1:
		return fmt.Sprintf("%.2g", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// printTable writes the figures as a table that can be read as text and as Markdown,
// and their notes below it.
func printTable(w io.Writer, figures []Figure) error {
	rows := [][]string{{"figure", "what", "got", "baseline", "against", "compared", "target", "met"}}
	for _, f := range figures {
		baseline, target, met := "–", orDash(f.Target), "–"
		if f.Baseline != 0 {
			baseline = quantity(f.Baseline, f.Unit)
		}
		if f.Target != "" {
			met = map[bool]string{true: "yes", false: "NO"}[f.Met()]
		}
		rows = append(rows, []string{f.ID, f.What, quantity(f.Got, f.Unit), baseline, orDash(f.Against), f.compared(), target, met})
	}
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, cell := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for i, r := range rows {
		for j, cell := range r {
			b.WriteString("| " + cell + strings.Repeat(" ", widths[j]-utf8.RuneCountInString(cell)+1))
		}
		b.WriteString("|\n")
		if i == 0 {
			for _, n := range widths {
				b.WriteString("|" + strings.Repeat("-", n+2))
			}
			b.WriteString("|\n")
		}
	}
	said := map[string]bool{}
	for _, f := range figures {
		if note := f.ID + ": " + f.Note; f.Note != "" && !said[note] {
			said[note] = true
			b.WriteString("\n" + note + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}
