package faults

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
)

// TestStrangeRecords is C3: tombstones of what nobody knows, empty keys and values,
// bytes that are no text, on each topic, by two clients. Each of those on the
// definitions topic has its decision; the others are counted and hurt nobody.
func TestStrangeRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Serve("owner", "owner")
	n := w.Serve("n1", "node")
	n.Statement("CREATE VIEW v AS SELECT a FROM t")

	// Kafka itself refuses what has no key, on all topics that are compacted.
	for _, topic := range []string{"definitions", "table", "nodes"} {
		for _, value := range [][]byte{nil, {}, []byte("CREATE VIEW x AS SELECT 1 AS one")} {
			if _, err := w.write(topic, record{nil, value, nil}); !errors.Is(err, sarama.ErrInvalidRecord) {
				t.Errorf("a record without a key on %s: %v", topic, err)
			}
		}
	}

	text := []byte("CREATE VIEW w AS SELECT a FROM t")
	want := map[viewkeeper.Version]string{}
	submit := func(verdict string, r record) { want[w.submit(r)] = verdict }
	submit("unchanged", record{[]byte("never_seen"), nil, nil})
	submit("unchanged", record{[]byte("never_seen"), []byte{}, nil})
	submit("refused NAME", record{[]byte{}, nil, nil})
	submit("refused NAME", record{[]byte{}, []byte{}, nil})
	submit("refused NAME", record{[]byte("a.b.c.d"), nil, nil})
	submit("refused NAME", record{[]byte{0xff, 0xfe, 0x00}, nil, nil})
	submit("unchanged", record{[]byte(strings.Repeat("k", 100<<10)), nil, nil})
	submit("unchanged", record{[]byte("#commit"), nil, nil}) // a name like any other here
	submit("refused SYNTAX", record{[]byte("w"), []byte{0x00}, nil})
	submit("refused SYNTAX", record{[]byte("w"), []byte{0xff, 0xfe}, nil})
	submit("refused SYNTAX", record{[]byte("w"), []byte(" \n\t"), nil})
	submit("refused SYNTAX", record{[]byte("w"), []byte("-- nothing"), nil})
	submit("refused SYNTAX", record{[]byte("w"), []byte("{\"format\":1}"), nil})
	submit("refused OPTION", record{[]byte("w"), text, map[string]string{"expect-version": ""}})
	submit("accepted", record{[]byte{}, text, nil})
	submit("accepted", record{[]byte("w"), nil, nil})
	submit("unchanged", record{[]byte("w"), nil, nil})
	// With -Z kcat makes null of what is empty.
	for _, kcat := range [][]string{{"-Z"}, {}} {
		before, err := w.admin.EndOffset(t.Context(), w.Topic("definitions"))
		w.must(err)
		fleet.Output(t, "never_seen|\n", "kcat", append([]string{"-b", w.Brokers, "-t", w.Topic("definitions"), "-P", "-K", "|"}, kcat...)...)
		want[viewkeeper.Version(before+1)] = "unchanged"
	}

	// The same on the topics that only viewkeeper writes to.
	for _, topic := range []string{"table", "nodes", "decisions"} {
		for _, key := range []string{"", "never_seen", "main.v", "#commit", "#heartbeat", "#fence/00", "#ids/0000", "#nobody", "\xff\xfe"} {
			for _, value := range [][]byte{nil, {}, []byte("{}"), []byte("null"), []byte(`{"format":1,"type":"row"}`), {0xff, 0x00}} {
				if _, err := w.write(topic, record{[]byte(key), value, nil}); err != nil {
					t.Errorf("%s %q: %v", topic, key, err)
				}
			}
		}
	}
	for _, value := range [][]byte{nil, {}, []byte("x")} {
		_, err := w.write("decisions", record{nil, value, nil})
		w.must(err)
	}

	last := w.submit(ddl("x", "CREATE VIEW x AS SELECT a FROM v"))
	want[last] = "accepted"
	for v, verdictWanted := range want {
		if got := verdict(w.decision(n, v)); got != verdictWanted {
			t.Errorf("version %d is %q, want %q", v, got, verdictWanted)
		}
	}
	if w.metric(n, "viewkeeper_table_records_total", `counted="false"`) < 9 {
		t.Error("what does not count is not counted")
	}

	// All is as it was for who was there, for who starts again, and for who comes new.
	check := func(p *fleet.Proc) {
		t.Helper()
		w.waitReady(p)
		p.WantRows("SELECT name FROM vk.definitions ORDER BY name", last, "main.v", "main.x")
		if got := verdict(w.decision(p, last)); got != "accepted" {
			t.Errorf("%s: %s", p.Name, got)
		}
	}
	check(n)
	w.Procs["owner"].Stop()
	n.Kill()
	w.Serve("owner", "owner")
	check(w.Serve("n1", "node"))
	check(w.Serve("n2", "node"))
	if d := w.Procs["n1"].Statement("CREATE VIEW y AS SELECT a FROM x"); d.Version != last+1 {
		t.Errorf("version %d after %d", d.Version, last)
	}
	fleet.SameDigests(t, w.Procs["n1"], w.Procs["n2"])
}

// sized is a statement for a view whose query, or whole text, has that many bytes.
func sized(name string, query, text int) string {
	head := "CREATE VIEW " + name + " AS "
	const before, after = "SELECT a /*", "*/ FROM t"
	body := before + strings.Repeat("x", max(0, query-len(before)-len(after))) + after
	pad := text - len(head) - len(body)
	if pad < 4 {
		return head + body
	}
	return "/*" + strings.Repeat("-", pad-4) + "*/" + head + body
}

// TestTooLarge is C12: at each limit and one byte to either side of it, through every
// door. What is too large is said at once where the door can know, and is a decision
// where it can't; what is not is accepted; and the next statement is decided.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.Serve("n", "owner,node")
	const query, text = 64 << 10, 512 << 10
	const notWritten = "not written"
	doors := map[string]func(name, sql string) string{
		"http": func(_, sql string) string {
			var d viewkeeper.Decision
			before, err := w.admin.EndOffset(t.Context(), w.Topic("definitions"))
			w.must(err)
			status := n.Call(http.MethodPost, "/v1/statements?timeout=30s", map[string]any{"sql": sql}, &d)
			after, err := w.admin.EndOffset(t.Context(), w.Topic("definitions"))
			w.must(err)
			if status == http.StatusRequestEntityTooLarge && before == after {
				return notWritten
			}
			return verdict(d)
		},
		"command": func(name, sql string) string {
			return ofCommand(w.command("sql", "--server", n.HTTP, "--output", "json", "-f", w.file(name+".sql", sql)))
		},
		"command to the topics": func(name, sql string) string {
			return ofCommand(w.command("sql", "--brokers", w.Brokers, "--catalog", w.Catalog, "--output", "json", "-f", w.file(name+".sql", sql)))
		},
		"kcat": func(name, sql string) string {
			before, err := w.admin.EndOffset(t.Context(), w.Topic("definitions"))
			w.must(err)
			fleet.Output(t, "", "kcat", "-b", w.Brokers, "-t", w.Topic("definitions"), "-P", "-k", name, "-c", "1", w.file(name+".sql", sql))
			return verdict(w.decision(n, viewkeeper.Version(before+1)))
		},
	}
	wanted := map[string]string{"http": notWritten, "command": "TOO_LARGE", "command to the topics": "TOO_LARGE", "kcat": "refused TOO_LARGE"}
	i, accepted := 0, 0
	for door, send := range doors {
		for _, limit := range []struct{ query, text int }{{query, 0}, {0, text}} {
			for by := -1; by <= 1; by++ {
				i++
				name := fmt.Sprintf("v%d", i)
				sql := sized(name, limit.query+by, 0)
				if limit.text > 0 {
					sql = sized(name, 0, limit.text+by)
				}
				want := "accepted"
				if by > 0 {
					want = wanted[door]
				} else {
					accepted++
				}
				if got := send(name, sql); got != want {
					t.Errorf("%s: a query of %d bytes in a text of %d is %q, want %q", door, limit.query+by, len(sql), got, want)
				}
			}
		}
	}

	// Over the topic's own limit the broker says no, and the producer hears it. Just
	// below it the record is there, and its decision too.
	value := func(size int) []byte { return []byte(sized("huge", 0, size)) }
	if _, err := w.write("definitions", record{[]byte("huge"), value(8 << 20), nil}); !errors.Is(err, sarama.ErrMessageSizeTooLarge) {
		t.Errorf("8 MiB: %v", err)
	}
	v := w.submit(record{[]byte("huge"), value(8<<20 - 200), nil})
	if d := w.decision(n, v); d.Code != viewkeeper.CodeTooLarge || len(d.SQL) > 64<<10 {
		t.Errorf("%s, %d bytes of text are kept", verdict(d), len(d.SQL))
	}
	n.Statement("CREATE VIEW after AS SELECT a FROM v1")
	w.wantCount(n, "SELECT count(*) FROM vk.definitions WHERE state = 'ok'", v, accepted+1)
}

// ofCommand is what `sql` says of one statement.
func ofCommand(status int, out string) string {
	switch {
	case status == 0 && strings.Contains(out, `"verdict":"accepted"`):
		return "accepted"
	case status == 1 && strings.Contains(out, "TOO_LARGE"):
		return "TOO_LARGE"
	}
	return fmt.Sprintf("exit %d: %.300s", status, out)
}

// TestTooLargeForTheTable is C12 on the other side: the statement is small, and what
// it makes of the catalog fits no record of the table. It is refused, nothing of it is
// there, the owner goes on; and the largest that is let through is taken by the broker.
func TestTooLargeForTheTable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.Serve("n", "owner,node")
	n.Statement("CREATE VIEW first AS SELECT a FROM t")
	// A rename writes every reader again, in one record.
	reader := func(name, of string) string {
		head, tail := "CREATE VIEW "+name+" AS SELECT a /*", "*/ FROM "+of
		return head + strings.Repeat("x", 60<<10) + tail
	}
	const most = 100 // of 60 KiB each, as rows and in the decision: beyond 8 MiB
	name, i := "first", 0
	var last viewkeeper.Decision
	refused := false
	for ; i < most && !refused; i++ {
		v := w.submit(ddl(fmt.Sprint("r", i), reader(fmt.Sprint("r", i), name)))
		if i < 65 {
			continue
		}
		if d := w.decision(n, v); d.Verdict != viewkeeper.Accepted {
			t.Fatalf("%d: %s %s", i, verdict(d), d.Message)
		}
		next := fmt.Sprint("name", i)
		last = w.decision(n, w.submit(ddl(name, "ALTER VIEW "+name+" RENAME TO "+next)))
		if refused = last.Code == viewkeeper.CodeTooLarge; !refused {
			if last.Verdict != viewkeeper.Accepted {
				t.Fatalf("%d readers: %s %s", i+1, verdict(last), last.Message)
			}
			name = next
		}
	}
	if !refused || i < 66 {
		t.Fatalf("the rename of what %d read is %s", i, verdict(last))
	}
	after := n.Statement("CREATE VIEW after AS SELECT a FROM " + name)
	w.wantCount(n, "SELECT count(*) FROM vk.definitions WHERE state = 'ok'", after.Version, i+2)
	fresh := w.Serve("fresh", "node")
	w.wantCount(fresh, "SELECT count(*) FROM vk.definitions WHERE state = 'ok'", after.Version, i+2)
	fleet.SameDigests(t, n, fresh)
	if epoch := n.Status().Epoch; w.metric(n, "viewkeeper_processor_takeovers_total") != 1 {
		t.Errorf("the owner began anew; its epoch is %d", epoch)
	}
}

// TestInputBeforeTheFirstStart is C21: statements that were written before there ever
// was an owner or a node are decided, in order, when there is one.
func TestInputBeforeTheFirstStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.submit(ddl("v", "CREATE VIEW v AS SELECT a FROM t"))
	w.submit(ddl("w", "CREATE VIEW w AS SELECT a FROM v"))
	n := w.Serve("n", "owner,node")
	n.WantRows("SELECT count(*) FROM w", 2, "2")
	for v := viewkeeper.Version(1); v <= 2; v++ {
		if d := w.decision(n, v); d.Verdict != viewkeeper.Accepted {
			t.Errorf("%+v", d)
		}
	}
	// The same for a second group of processes that comes after these have gone.
	n.Stop()
	w.submit(ddl("x", "CREATE VIEW x AS SELECT a FROM w"))
	other := w.Serve("other", "owner,node")
	other.WantRows("SELECT count(*) FROM x", 3, "2")
}

// TestScripts is C47: each statement of a script has its own answer, a later one sees
// the earlier, and a change set is there whole or not at all.
func TestScripts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.Serve("n", "owner,node")
	// Two doors: by a node, and straight to the topics.
	for i, door := range [][]string{{"--server", n.HTTP}, {"--brokers", w.Brokers, "--catalog", w.Catalog}} {
		sql := func(text string) (int, string) {
			return w.command(append([]string{"sql", "--output", "json", "-f", w.file("script.sql", text)}, door...)...)
		}
		names := func() (out []string) {
			rows, err := n.Query(fmt.Sprintf("SELECT name FROM vk.definitions WHERE name LIKE 'main.%%%d' ORDER BY name", i), 0)
			w.must(err)
			for _, r := range rows {
				out = append(out, fmt.Sprint(r[0]))
			}
			return out
		}
		status, out := sql(fmt.Sprintf("CREATE VIEW one%[1]d AS SELECT a FROM t; CREATE VIEW two%[1]d AS SELECT a FROM one%[1]d; CREATE VIEW three%[1]d AS SELECT nope FROM two%[1]d;", i))
		if status != 1 || strings.Count(out, `"verdict":"accepted"`) != 2 || strings.Count(out, `"verdict":"refused"`) != 1 {
			t.Errorf("%v: exit %d: %s", door, status, out)
		}
		fleet.Eventually(t, "the two", func() error {
			if got := names(); !slices.Equal(got, []string{fmt.Sprint("main.one", i), fmt.Sprint("main.two", i)}) {
				return fmt.Errorf("%v", got)
			}
			return nil
		})
		status, out = sql(fmt.Sprintf("BEGIN; CREATE VIEW s%[1]d AS SELECT a FROM t; CREATE VIEW u%[1]d AS SELECT a FROM s%[1]d; CREATE VIEW x%[1]d AS SELECT nope FROM u%[1]d; COMMIT", i))
		if status != 1 || !strings.Contains(out, `"verdict":"refused"`) || len(names()) != 2 {
			t.Errorf("%v: exit %d: %s; %v", door, status, out, names())
		}
	}
	// Two statements in one record, as only a foreign producer can send them.
	before := n.Status().Digest
	v := w.submit(ddl("smuggled", "CREATE VIEW smuggled AS SELECT a FROM t; DROP VIEW one0"))
	if d := w.decision(n, v); verdict(d) != "refused SYNTAX" {
		t.Errorf("%s %s", verdict(d), d.Message)
	}
	if n.Status().Digest != before {
		t.Error("something of the smuggled statements is there")
	}
}
