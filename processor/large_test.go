package processor

import (
	"fmt"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// A statement that fits no record is refused, though the judge let it through, and is
// not part of the catalog that the next one is judged against.
func TestTooLarge(t *testing.T) {
	w := newWorld(t)
	w.start("node-1", func(p *Processor) { p.cfg.RecordBytes = 150 << 10 })
	big := fmt.Sprintf("CREATE VIEW big AS SELECT a /* %s */ FROM t", strings.Repeat("x", 60<<10))
	d := w.decided(w.emit(sql("main.big", big)))
	if d.Code != viewkeeper.CodeTooLarge || len(d.Rows) != 0 || len(d.SQL) == 0 {
		t.Errorf("%s %s, %d rows", d.Code, d.Message, len(d.Rows))
	}
	w.decided(w.emit(create("a", 1)))
	if d := w.decided(w.emit(sql("main.b", "CREATE VIEW b AS SELECT * FROM big"))); d.Code != viewkeeper.CodeBind {
		t.Errorf("%s %s", d.Code, d.Message)
	}
	if d := w.decided(w.emit(sql("main.b", "CREATE VIEW b AS SELECT * FROM a"))); d.Verdict != viewkeeper.Accepted {
		t.Errorf("%s %s", d.Code, d.Message)
	}
	// A refusal may be large too.
	if d := w.decided(w.emit(sql("main.c", "nonsense "+strings.Repeat("y", 300<<10)))); d.Verdict != viewkeeper.Refused || len(d.SQL) != keptText {
		t.Errorf("%s, %d bytes of text are kept", d.Code, len(d.SQL))
	}
}

func TestShrinkFitsWhateverComes(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	d := viewkeeper.Decision{StatementID: "s", SQL: long, Message: long, Author: long, Reason: long}
	for i := range 5000 {
		name := viewkeeper.MakeName("", fmt.Sprint("v", i))
		columns := make([]viewkeeper.Column, 100)
		d.Changed = append(d.Changed, viewkeeper.Change{Name: name, ColumnsBefore: columns})
		d.Broken = append(d.Broken, viewkeeper.Broken{Name: name, Reason: long[:1000]})
		d.Warnings = append(d.Warnings, viewkeeper.Warning{Name: name, Message: long[:1000]})
		d.Dropped, d.Repaired = append(d.Dropped, name), append(d.Repaired, name)
	}
	small := shrink(d)
	if n := len(codec.EncodeDecision(small).Value); n > 256<<10 {
		t.Errorf("%d bytes", n)
	}
	if len(d.Changed) != 5000 || len(d.Changed[0].ColumnsBefore) != 100 {
		t.Error("the decision itself was changed")
	}
}
