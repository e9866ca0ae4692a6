package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// p2 judges one change at a time, as the owner does it and without Kafka: with an
// engine of its own, over a large catalog and over one of 100 definitions in turn.
func p2(ctx context.Context, env *Env) (figures []Figure, err error) {
	const few = 100
	large, err := loadJudged(ctx, env.N)
	if err != nil {
		return nil, err
	}
	defer large.close(&err)
	small, err := loadJudged(ctx, few)
	if err != nil {
		return nil, err
	}
	defer small.close(&err)

	_, statements := registrytest.Large(1)
	root := strings.Replace(statements[0], "CREATE VIEW", "CREATE OR REPLACE VIEW", 1)
	kinds := []struct {
		what   string
		text   func(i int) string
		repeat int
		each   bool // its cost is that of the definitions that read the root
		limit  float64
	}{
		{"a leaf", func(i int) string {
			return fmt.Sprintf("CREATE OR REPLACE VIEW large.p2_leaf AS SELECT id, region, amount + %d AS amount FROM %s WHERE n > %d", i, registrytest.LargeRoot, i)
		}, 400, false, 2},
		{"a root, schema kept", func(i int) string { return strings.Replace(root, "amount > 0", fmt.Sprint("amount > ", i), 1) }, 400, false, 5},
		{"a root, schema changed", func(i int) string {
			return strings.Replace(root, "1 AS extra", []string{"1 AS extra", "'x' AS extra"}[i%2], 1)
		}, 12, true, 300},
	}
	readers := map[*judged]int{large: min(1000, env.N/10), small: few / 10}
	if env.Quick {
		kinds[0].repeat, kinds[1].repeat, kinds[2].repeat = 100, 100, 6
	}
	for _, k := range kinds {
		took := map[*judged]durations{}
		for i := range k.repeat + 2 {
			for _, j := range []*judged{large, small} {
				began := time.Now()
				if err := j.accept(ctx, "root", k.text(i+1)); err != nil {
					return nil, err
				}
				if i >= 2 { // the first ones make what is there only once
					took[j] = append(took[j], time.Since(began))
				}
			}
		}
		got, other := took[large].at(0.5), took[small].at(0.5)
		note := fmt.Sprintf("p99 %.2f ms; %d definitions read the root", took[large].at(0.99), readers[large])
		if k.each {
			other *= float64(readers[large]) / float64(readers[small])
			note += fmt.Sprintf(", and %d at %d definitions, whose cost is taken times %d", readers[small], few, readers[large]/readers[small])
		}
		figures = append(figures,
			Figure{ID: "P2", What: fmt.Sprintf("judging %s, p50", k.what), Got: got, Unit: "ms",
				Limit: k.limit, Target: fmt.Sprintf("≤ %g ms", k.limit), Note: note},
			Figure{ID: "P2", What: fmt.Sprintf("%s, over the same at %d", k.what, few), Got: got / other, Unit: "×", Limit: 1.3, Target: "≤ 1.3 ×"})
	}
	return figures, nil
}

// accept judges a statement that must be accepted.
func (j *judged) accept(ctx context.Context, key, sql string) error {
	j.offset++
	out, err := j.catalog.Judge(ctx, viewkeeper.Submission{Key: key, SQL: sql, ID: fmt.Sprint("bench-", j.offset), Offset: j.offset})
	if err != nil {
		return err
	}
	if out.Decision.Verdict != viewkeeper.Accepted {
		return fmt.Errorf("%s: %s\n%s", out.Decision.Code, out.Decision.Message, sql)
	}
	return nil
}
