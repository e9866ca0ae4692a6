package fold

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// The stories in testdata: a log as text in, the answers out. Run with -rewrite to
// write the answers again. The commands:
//
//	new                     a follower that has read nothing
//	log                     adds one record a line, at the next offset unless @n is said:
//	  fence n [base=b]
//	  commit v=3 e=1 [rows=a@3,b@3-] [ids=x@3] [base=b]     b@3- is a drop
//	  row a v=3 e=1 [drop] [sql=text]
//	  ids v=3 e=1 ids=x@3
//	  beat v=3 e=1
//	  tomb KEY, junk KEY, newer KEY
//	  format=n goes with fences, commit rows and rows
//	end n                   the end was asked for now and is n
//	show                    what the fold says
//	take                    what became visible
//	complete e, heal e      what an owner of epoch e must write
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		f := New()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var b strings.Builder
			switch d.Cmd {
			case "new":
				f = New()
			case "log":
				for line := range strings.Lines(d.Input) {
					offset, r := parseRecord(t, strings.TrimSpace(line), f.Next())
					if !f.Add(offset, r) {
						fmt.Fprintf(&b, "%d %s does not count\n", offset, r.Key())
					}
				}
			case "end":
				gap, _ := f.NeedEnd()
				f.EndIs(gap, int64(number(t, d.CmdArgs[0].Key)))
			case "show":
				show(&b, f)
			case "take":
				u, ok := f.Take()
				if !ok {
					return "nothing\n"
				}
				fmt.Fprintf(&b, "version %d\n", u.Version)
				for _, r := range u.Changed {
					fmt.Fprintln(&b, "changed", rowText(r))
				}
				for _, c := range u.Commits {
					fmt.Fprintf(&b, "commit v=%d e=%d\n", c.Version, c.Epoch)
				}
			case "complete":
				writeRecords(&b, f.Completion(viewkeeper.Epoch(number(t, d.CmdArgs[0].Key))))
			case "heal":
				writeRecords(&b, f.Heal(viewkeeper.Epoch(number(t, d.CmdArgs[0].Key))))
			default:
				d.Fatalf(t, "no command %s", d.Cmd)
			}
			if b.Len() == 0 {
				return "ok\n"
			}
			return b.String()
		})
	})
}

func show(b *strings.Builder, f *Fold) {
	state := "shown"
	if f.Collecting() {
		state = "collecting"
		if _, need := f.NeedEnd(); need {
			state += ", end needed"
		} else if end, ok := f.End(); ok {
			state += fmt.Sprintf(" to %d", end)
		}
	}
	fmt.Fprintf(b, "next %d, %s, epoch %d, version %d\n", f.Next(), state, f.Epoch(), f.Version())
	for _, r := range f.Rows() {
		fmt.Fprintln(b, rowText(r))
	}
	if n := f.Held(); n > 0 {
		fmt.Fprintf(b, "%d held\n", n)
	}
	for n := range codec.Slots {
		if s := f.ring[n]; s != nil && len(s.ids) > 0 {
			fmt.Fprintf(b, "slot %d: %s\n", n, idsText(s.ids))
		}
	}
	if h := f.Heartbeat(); h != nil {
		fmt.Fprintf(b, "heartbeat v=%d e=%d\n", h.Version, h.Epoch)
	}
	if c := f.Counts(); c != (Counts{}) {
		fmt.Fprintf(b, "stale %d, tombstones %d, unknown %d (newer %d)\n", c.Stale, c.Tombstones, c.Unknown, c.Newer)
	}
	if f.FenceLost() {
		fmt.Fprintln(b, "the fence is lost")
	}
	if newer := f.Newer(); newer != nil {
		fmt.Fprintf(b, "newer: %s; an owner: %q\n", strings.Join(newer, " "), f.NewerOwner())
	}
}

func rowText(r viewkeeper.Row) string {
	s := fmt.Sprintf("%s v=%d e=%d", r.Name.View, r.Version, r.Epoch)
	if !r.Live() {
		return s + " drop"
	}
	return s + " sql=" + r.Definition.SQL
}

func idsText(ids []codec.ID) string {
	var out []string
	for _, id := range ids {
		out = append(out, fmt.Sprintf("%s@%d", id.ID, id.Version))
	}
	return strings.Join(out, ",")
}

func writeRecords(b *strings.Builder, records []codec.Record) {
	for _, r := range records {
		switch r := r.(type) {
		case codec.Row:
			fmt.Fprintln(b, "row", rowText(r.Row))
		case *codec.Commit:
			fmt.Fprintf(b, "commit v=%d e=%d\n", r.Version, r.Epoch)
			for _, in := range r.Rows {
				fmt.Fprintln(b, " ", rowText(in))
			}
		case *codec.IDs:
			fmt.Fprintf(b, "slot %d v=%d e=%d %s\n", r.Slot, r.Version, r.Epoch, idsText(r.IDs))
		}
	}
	if b.Len() == 0 {
		b.WriteString("nothing\n")
	}
}

// parseRecord reads one line of a log.
func parseRecord(t testing.TB, line string, next int64) (int64, codec.Record) {
	t.Helper()
	fields := strings.Fields(line)
	offset := next
	if strings.HasPrefix(fields[0], "@") {
		offset = int64(number(t, fields[0][1:]))
		fields = fields[1:]
	}
	what := ""
	args := map[string]string{}
	for _, arg := range fields[1:] {
		if k, v, ok := strings.Cut(arg, "="); ok {
			args[k] = v
		} else if what == "" {
			what = arg
		} else {
			args[arg] = "yes"
		}
	}
	num := func(k string) uint64 {
		if args[k] == "" {
			return 0
		}
		return number(t, args[k])
	}
	version, epoch := viewkeeper.Version(num("v")), viewkeeper.Epoch(num("e"))
	switch fields[0] {
	case "fence":
		return offset, &codec.Fence{Nonce: what, EpochBase: viewkeeper.Epoch(num("base")), Format: int(num("format"))}
	case "commit":
		c := &codec.Commit{Version: version, Epoch: epoch, EpochBase: viewkeeper.Epoch(num("base")), IDs: parseIDs(t, args["ids"]), Format: int(num("format"))}
		for _, text := range split(args["rows"]) {
			drop := strings.HasSuffix(text, "-")
			name, v, _ := strings.Cut(strings.TrimSuffix(text, "-"), "@")
			c.Rows = append(c.Rows, makeRow(name, viewkeeper.Version(number(t, v)), epoch, drop, ""))
		}
		return offset, c
	case "row":
		r := makeRow(what, version, epoch, args["drop"] != "", args["sql"])
		r.Format = int(num("format"))
		return offset, codec.Row{Row: r}
	case "ids":
		ids := parseIDs(t, args["ids"])
		return offset, &codec.IDs{Slot: codec.Slot(version), Version: version, Epoch: epoch, IDs: ids}
	case "beat":
		return offset, &codec.Heartbeat{Version: version, Epoch: epoch}
	case "tomb":
		return offset, codec.Tombstone{TableKey: what}
	case "junk", "newer":
		return offset, codec.Unknown{TableKey: what, Newer: fields[0] == "newer"}
	}
	t.Fatalf("no record %q", line)
	return 0, nil
}

// makeRow makes a row whose text, unless given, follows from name and version.
func makeRow(view string, v viewkeeper.Version, e viewkeeper.Epoch, drop bool, sql string) viewkeeper.Row {
	name := viewkeeper.MakeName("", view)
	r := viewkeeper.Row{Name: name, Version: v, Epoch: e}
	if !drop {
		if sql == "" {
			sql = fmt.Sprintf("%s%d", view, v)
		}
		r.Definition = &viewkeeper.Definition{Name: name, Kind: viewkeeper.KindView, SQL: sql, ID: 1}
	}
	return r
}

func parseIDs(t testing.TB, s string) (ids []codec.ID) {
	for _, text := range split(s) {
		id, v, _ := strings.Cut(text, "@")
		ids = append(ids, codec.ID{ID: id, Version: viewkeeper.Version(number(t, v))})
	}
	return ids
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func number(t testing.TB, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
