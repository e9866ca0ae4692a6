package registrytest_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// world is what one script plays on: an owner's catalog over a base. The
// commands of the scripts are its methods, listed in run.
type world struct {
	lake string
	seen *coverage

	planner registry.Planner
	baseSQL string
	options registry.BaseOptions
	catalog *registry.Catalog
	rows    map[viewkeeper.Name]viewkeeper.Row
	offset  int64
	// texts are what @name stands for in this script, see the command let.
	texts map[string]string
}

// coverage is what all scripts together have reached.
type coverage struct {
	codes map[viewkeeper.Code]bool
	rows  map[string]bool
	cases int
}

func newWorld(t *testing.T, seen *coverage, lake string) *world {
	w := &world{lake: lake, seen: seen}
	w.open(t, registrytest.BaseSQL)
	t.Cleanup(func() { w.planner.Close() })
	return w
}

// open starts an engine over a base, with the rows of before.
func (w *world) open(t *testing.T, baseSQL string) {
	if w.planner != nil {
		w.planner.Close()
	}
	planner, err := openEngine(t, baseSQL, w.lake)
	if err != nil {
		t.Fatal(err)
	}
	w.planner, w.baseSQL = planner, baseSQL
	w.load(t)
}

func (w *world) load(t *testing.T) {
	base, err := registry.NewBase(t.Context(), w.planner, w.options)
	if err != nil {
		t.Fatal(err)
	}
	var rows []viewkeeper.Row
	for _, r := range w.rows {
		rows = append(rows, r)
	}
	w.catalog, err = registry.LoadCatalog(t.Context(), base, rows, registry.CatalogOptions{Epoch: 1, Owner: "node-1"})
	if err != nil {
		t.Fatal(err)
	}
}

// reset forgets all definitions and settings.
func (w *world) reset(t *testing.T) {
	w.rows, w.offset, w.options = nil, 0, registry.BaseOptions{}
	if w.baseSQL != registrytest.BaseSQL {
		w.open(t, registrytest.BaseSQL)
		return
	}
	w.load(t)
}

func (w *world) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "new": // an empty catalog over the usual base
		w.reset(t)
		return "ok"
	case "let": // from here on @name in a statement stands for the input
		if w.texts == nil {
			w.texts = map[string]string{}
		}
		w.texts["@"+d.CmdArgs[0].Key] = w.expand(d.Input)
		return "ok"
	case "given": // statements that must be accepted
		return w.given(t, d)
	case "judge": // a verdict, and the catalog goes on
		return w.show(d, w.judge(t, w.submission(t, d)))
	case "check": // a verdict, and nothing happens
		return w.show(d, w.check(t, w.submission(t, d)))
	case "catalog": // the definitions as the catalog has them
		return w.listing()
	case "text": // the stored text of the named definitions
		return w.showTexts(t, d)
	case "lineage": // all that stands behind the named definitions
		return w.showLineage(t, d)
	case "base": // the base changes under the catalog: objects go, others come
		w.open(t, otherBase(d))
		return w.listing()
	case "limits": // other limits on complexity and size
		w.options.Limits = registry.Limits{Depth: number(t, d, "depth"), Leaves: number(t, d, "leaves"), Layers: number(t, d, "layers"), Record: number(t, d, "record")}
		w.load(t)
		return "ok"
	case "policy": // what materialized definitions must hold
		var p registry.RequiredColumn
		for _, a := range d.CmdArgs {
			switch a.Key {
			case "any":
				p.AnyOf = a.Vals
			case "types":
				p.Types = a.Vals
			}
		}
		w.options.Policy.Require = append(w.options.Policy.Require, p)
		w.load(t)
		return "ok"
	}
	t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	return ""
}

var shorthand = regexp.MustCompile(`@[a-z]+`)

func (w *world) expand(text string) string {
	return shorthand.ReplaceAllStringFunc(text, func(name string) string {
		if full, ok := w.texts[name]; ok {
			return full
		}
		return name
	})
}

func number(t *testing.T, d *datadriven.TestData, key string) int {
	n := 0
	if d.HasArg(key) {
		d.ScanArgs(t, key, &n)
	}
	return n
}

// otherBase is the usual base without the objects that the directive names. A
// statement of the input that makes one of them anew takes its place; the others
// come last.
func otherBase(d *datadriven.TestData) string {
	var without []string
	for _, a := range d.CmdArgs {
		if a.Key == "without" {
			without = a.Vals
		}
	}
	makes := func(st, name string) bool {
		return strings.Contains(st, " "+name+"(") || strings.Contains(st, " "+name+" ")
	}
	more := strings.SplitAfter(d.Input, ";")
	var out []string
	for _, st := range strings.SplitAfter(registrytest.BaseSQL, ";") {
		i := slices.IndexFunc(without, func(name string) bool {
			return strings.HasPrefix(strings.TrimSpace(st), "CREATE") && makes(firstLine(st), name)
		})
		if i < 0 {
			out = append(out, st)
			continue
		}
		for j, m := range more {
			if makes(firstLine(m), without[i]) {
				out = append(out, m)
				more = slices.Delete(more, j, j+1)
				break
			}
		}
	}
	return strings.Join(append(out, more...), "")
}

// firstLine is the head of a statement, up to what it is made of.
func firstLine(st string) string {
	head, _, _ := strings.Cut(strings.TrimSpace(st), "(")
	return head + "("
}

var (
	escapes = regexp.MustCompile(`\\u[0-9A-F]{4}`)
	repeats = regexp.MustCompile(`(?s)«(.*?)»`)
)

// submission makes the record of a directive. Its text is the input; with
// "escape", \u00A0 and the like stand for characters; with "times", each «text» is
// repeated, $i counting from 1 and $j from 0.
func (w *world) submission(t *testing.T, d *datadriven.TestData) viewkeeper.Submission {
	s := viewkeeper.Submission{SQL: w.expand(d.Input), Key: fmt.Sprint("key-", w.offset), Offset: w.offset, At: time.Unix(1767225600+w.offset, 0)}
	s.ID = fmt.Sprint("topic:", w.offset)
	times := 0
	for _, a := range d.CmdArgs {
		value := ""
		if len(a.Vals) > 0 {
			value = a.Vals[0]
		}
		switch a.Key {
		case "key":
			s.Key = value
		case "expect":
			v, err := viewkeeper.ParseVersion(value)
			if err != nil {
				t.Fatal(err)
			}
			s.ExpectVersion = &v
		case "tombstone":
			s.SQL, s.Tombstone = "", true
		case "header":
			s.HeaderError = "the header " + value + " is not one"
		case "id":
			s.ID = value
		case "escape":
			s.SQL = escapes.ReplaceAllStringFunc(s.SQL, func(e string) string {
				n, _ := strconv.ParseUint(e[2:], 16, 32)
				return string(rune(n))
			})
		case "bytes":
			s.SQL = strings.ReplaceAll(s.SQL, "¿", string([]byte{0xff, 0xfe}))
		case "nul":
			s.SQL = strings.ReplaceAll(s.SQL, "¿", "\x00")
		case "times":
			times = number(t, d, "times")
		case "case":
			for _, v := range a.Vals {
				w.seen.rows[v] = true
			}
		default:
			t.Fatalf("%s: unknown argument %s", d.Pos, a.Key)
		}
	}
	s.SQL = repeats.ReplaceAllStringFunc(s.SQL, func(m string) string {
		var b strings.Builder
		inner := strings.TrimSuffix(strings.TrimPrefix(m, "«"), "»")
		for i := range times {
			b.WriteString(strings.NewReplacer("$i", fmt.Sprint(i+1), "$j", fmt.Sprint(i)).Replace(inner))
		}
		return b.String()
	})
	s.SQL = strings.ReplaceAll(s.SQL, "LAKE", w.lake)
	return s
}

func (w *world) given(t *testing.T, d *datadriven.TestData) string {
	s := w.submission(t, d)
	var out strings.Builder
	for _, piece := range ddl.Split(s.SQL) {
		one := s
		one.SQL, one.Offset, one.ID, one.Key = piece.Text, w.offset, fmt.Sprint("topic:", w.offset), fmt.Sprint("key-", w.offset)
		o := w.judge(t, one)
		if o.Decision.Verdict != viewkeeper.Accepted {
			fmt.Fprintf(&out, "%s\n", w.show(d, o))
		}
	}
	if out.Len() > 0 {
		return out.String()
	}
	return "ok"
}

// judge decides, and holds the outcome to what must be true of every one: the
// check before it said the same and changed nothing, the rows are those of the
// decision, only an accepted statement changes the catalog, and the factory that
// went on is the one that its rows build from nothing.
func (w *world) judge(t *testing.T, s viewkeeper.Submission) *registry.Outcome {
	before := w.catalog.Snapshot()
	checked := w.check(t, s)
	out, err := w.catalog.Judge(t.Context(), s)
	if err != nil {
		t.Fatalf("judge %q: %v", s.SQL, err)
	}
	if a, b := asJSON(t, checked.Decision), asJSON(t, out.Decision); a != b {
		t.Errorf("%q: check and judge differ:\n%s\n%s", s.SQL, a, b)
	}
	after := w.catalog.Snapshot()
	dec := out.Decision
	if want := viewkeeper.Version(s.Offset + 1); dec.Version != want {
		t.Errorf("%q: version %d, want %d", s.SQL, dec.Version, want)
	}
	switch {
	case dec.Verdict != viewkeeper.Accepted && (len(out.Rows) > 0 || before.Digest() != after.Digest() || before.BuildDigest() != after.BuildDigest()):
		t.Errorf("%q: %s, and yet the catalog changed: %v", s.SQL, dec.Verdict, out.Rows)
	case dec.Verdict == viewkeeper.Accepted && len(out.Rows) == 0:
		t.Errorf("%q: accepted, and yet there are no rows", s.SQL)
	case len(dec.Rows) != len(out.Rows):
		t.Errorf("%q: %d rows, %d in the decision", s.SQL, len(out.Rows), len(dec.Rows))
	case (dec.Verdict == viewkeeper.Refused) != (dec.Code != ""):
		t.Errorf("%q: %s with code %q", s.SQL, dec.Verdict, dec.Code)
	case dec.Verdict == viewkeeper.Refused && dec.Message == "":
		t.Errorf("%q: refused without a message", s.SQL)
	}
	for i, r := range out.Rows {
		if j := dec.Rows[i]; j.Name != r.Name || j.Version != r.Version || j.Dropped == r.Live() || r.Version != dec.Version {
			t.Errorf("%q: row %+v, in the decision %+v", s.SQL, r, j)
		}
		if w.rows == nil {
			w.rows = map[viewkeeper.Name]viewkeeper.Row{}
		}
		w.rows[r.Name] = r
	}
	w.sameFromNothing(t, s.SQL, after)
	w.offset++
	return out
}

// sameFromNothing builds the rows from nothing and compares.
func (w *world) sameFromNothing(t *testing.T, text string, got *registry.Factory) {
	var rows []viewkeeper.Row
	for _, r := range w.rows {
		rows = append(rows, r)
	}
	fresh, err := registry.BuildFactory(t.Context(), got.Base(), rows, registry.LiveSnapshot)
	if err != nil {
		t.Fatal(err)
	}
	if fresh.Digest() != got.Digest() || fresh.BuildDigest() != got.BuildDigest() {
		t.Errorf("%q: the catalog differs from its rows built from nothing:\n%s\n%s", text, listing(got), listing(fresh))
	}
}

func (w *world) check(t *testing.T, s viewkeeper.Submission) *registry.Outcome {
	out, err := w.catalog.Check(t.Context(), s)
	if err != nil {
		t.Fatalf("check %q: %v", s.SQL, err)
	}
	return out
}

// makeLake fills a folder with the files that scripts read.
func makeLake(ctx context.Context, dir string) error {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return err
	}
	defer db.Close()
	if err := os.MkdirAll(filepath.Join(dir, "dir"), 0o755); err != nil {
		return err
	}
	for file, query := range map[string]string{
		"x.parquet":     "SELECT 1 AS a, 'one' AS b",
		"dir/1.parquet": "SELECT 1::BIGINT AS n",
		"dir/2.parquet": "SELECT 2::BIGINT AS n",
		"x.csv":         "SELECT 1 AS a, 'one' AS b",
	} {
		if _, err := db.ExecContext(ctx, fmt.Sprintf("COPY (%s) TO '%s'", query, filepath.Join(dir, file))); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "note.txt"), []byte("a note\n"), 0o644)
}

// TestVerdicts plays the scripts under testdata/cases. -rewrite writes what the
// judge says today into them, to be read before it is kept.
func TestVerdicts(t *testing.T) {
	lake := t.TempDir()
	if err := makeLake(t.Context(), lake); err != nil {
		t.Fatal(err)
	}
	seen := &coverage{codes: map[viewkeeper.Code]bool{}, rows: map[string]bool{}}
	files, err := filepath.Glob("testdata/cases/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			played++
			w := newWorld(t, seen, lake)
			datadriven.RunTest(t, file, w.run)
		})
	}
	if played < len(files) || t.Failed() {
		return // -run chose some; what is missing is no news
	}
	seen.complete(t)
}

// elsewhere are the codes that no script can reach, with the test that does: the
// law alone does not give them.
var elsewhere = map[viewkeeper.Code]string{
	viewkeeper.CodeIDReused:      "../../processor/many_test.go", // the owner's ring of known ids
	viewkeeper.CodeEngineKilled:  "../fault_test.go",             // an engine that dies twice
	viewkeeper.CodeEngineTimeout: "../fault_test.go",
	viewkeeper.CodeInternal:      "", // a mistake of the program itself: nothing should
}

// complete holds the scripts together to what they promise: every code, every
// numbered row of testdata/README.md, and no fewer verdicts than there were.
func (c *coverage) complete(t *testing.T) {
	for _, code := range declaredCodes(t) {
		file, other := elsewhere[code]
		switch {
		case c.codes[code] == other:
			t.Errorf("%s: reached by a script: %v; listed as reached elsewhere: %v", code, c.codes[code], other)
		case file != "":
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if camel := codeName(code); !strings.Contains(string(text), camel) && !strings.Contains(string(text), string(code)) {
				t.Errorf("%s does not mention %s", file, code)
			}
		}
	}
	readme, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllSubmatch(readme, -1) {
		if !c.rows[string(m[1])] {
			t.Errorf("no script has a verdict with case=%s", m[1])
		}
	}
	if c.cases < 200 {
		t.Errorf("%d verdicts, want 200 or more", c.cases)
	}
	t.Logf("%d verdicts, %d codes, %d numbered cases", c.cases, len(c.codes), len(c.rows))
}

// codeName is the constant of a code: ENGINE_KILLED is CodeEngineKilled, and
// ID_REUSED is CodeIDReused.
func codeName(code viewkeeper.Code) string {
	name := "Code"
	for _, word := range strings.Split(string(code), "_") {
		if word != "ID" {
			word = word[:1] + strings.ToLower(word[1:])
		}
		name += word
	}
	return name
}

// declaredCodes reads the codes from the vocabulary's source, so that a new one
// can't be forgotten here.
func declaredCodes(t *testing.T) []viewkeeper.Code {
	source, err := os.ReadFile("../../errors.go")
	if err != nil {
		t.Fatal(err)
	}
	var codes []viewkeeper.Code
	for _, m := range regexp.MustCompile(`(?:Code|Warn)\w+\s+Code = "([A-Z_]+)"`).FindAllSubmatch(source, -1) {
		codes = append(codes, viewkeeper.Code(m[1]))
	}
	if len(codes) < 30 {
		t.Fatalf("found %d codes: the pattern is wrong", len(codes))
	}
	slices.Sort(codes)
	return codes
}
