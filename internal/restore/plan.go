package restore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
)

// Plan is what a restore writes.
type Plan struct {
	Report Report
	// Commit goes on from what is put back. Its Rows are set when it is written.
	Commit *codec.Commit
	// Rows are to be written: in place those that change, else all.
	Rows []viewkeeper.Row
	// Slots is the ring of known statement ids.
	Slots []*codec.IDs
	// Remove are keys with records that can't be read.
	Remove []string
	// InPlace says that a commit row counts in the table now.
	InPlace bool
}

// Report says what a plan does, and what it can't.
type Report struct {
	Catalog string `json:"catalog"`
	// From is the source's kind, Place where it is, SourceVersion its version.
	From          Kind               `json:"from"`
	Place         string             `json:"place"`
	SourceVersion viewkeeper.Version `json:"source_version"`
	// Decisions is how many that came after it are added.
	Decisions int `json:"decisions_added"`
	// Version is the catalog's after the restore, Epoch that of its records once written.
	Version viewkeeper.Version `json:"version"`
	Epoch   viewkeeper.Epoch   `json:"epoch,omitempty"`
	// Definitions is how many it has, StatementIDs how many ids are known.
	Definitions  int `json:"definitions"`
	StatementIDs int `json:"statement_ids"`
	// Changed is how many definitions the table has otherwise, or not, or too many.
	Changed int `json:"changed"`
	// Damage is what is wrong with the table as it is; empty for one that is well.
	Damage []string `json:"damage"`
	// Complete says that nothing is missing: the catalog is as it was.
	Complete bool `json:"complete"`
	// Missing says what is, and why.
	Missing []string `json:"missing"`
	// JudgedAgain is how many statements the next owner judges that were perhaps judged
	// before, without an answer: nothing of them is lost.
	JudgedAgain int64 `json:"judged_again"`
	// Notes are worth knowing, and take nothing away.
	Notes []string `json:"notes"`
	// Lost are the statements that were decided, and that nothing says the outcome of.
	Lost []Lost `json:"lost_statements"`
	// Written is false for a plan that was not carried out.
	Written bool `json:"written"`
}

// Lost is a statement that was decided after the source, and of which no decision is
// there. SQL is its text if the definitions topic still has it.
type Lost struct {
	Offset  int64              `json:"offset"`
	Version viewkeeper.Version `json:"version"`
	ID      string             `json:"statement_id"`
	Key     string             `json:"key"`
	SQL     string             `json:"sql"`
}

// NewerFormatError is returned when a source is of a program that knows more.
type NewerFormatError struct{ What string }

// Error names it.
func (e *NewerFormatError) Error() string {
	return e.What + " is of a newer format than this program's; restore with the program that wrote it"
}

// TruncatedError is returned for a table whose first records were deleted: nobody
// becomes ready over it, whatever is written to its end.
type TruncatedError struct{ Begin int64 }

// Error says what to do.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("the table begins at offset %d, its first records were deleted, and no node reads it from there: delete the topic, make it anew with viewkeeper topics create, and restore again", e.Begin)
}

// Make plans to put a source back. It changes nothing.
func Make(ctx context.Context, k *Known, s *Source) (*Plan, error) {
	p := &Plan{Commit: &codec.Commit{}, Report: Report{
		Catalog: k.Catalog, From: s.Kind, Place: s.Place, SourceVersion: s.Version,
		Damage: k.damage(), Missing: []string{}, Notes: []string{}, Lost: []Lost{},
	}}
	if key := k.Table.Fold.NewerOwner(); key != "" {
		return nil, &NewerFormatError{"the record " + key + " of the table"}
	}
	b := &builder{known: k, source: s, plan: p, rows: map[viewkeeper.Name]viewkeeper.Row{}, ring: fold.NewRing(nil, nil)}
	if err := b.gather(); err != nil {
		return nil, err
	}
	if err := b.place(ctx); err != nil {
		return nil, err
	}
	b.write()
	return p, nil
}

// Adopt plans to go on under the present definitions topic, which is another than the
// catalog knows. Only the commit row changes: what it holds of the last batch stays, since
// its owner may not have come to it.
func Adopt(k *Known) (*Plan, error) {
	f := k.Table.Fold
	if key := f.NewerOwner(); key != "" {
		return nil, &NewerFormatError{"the record " + key + " of the table"}
	}
	next := *f.Commit()
	next.DefinitionsTopic, next.VersionBase = k.DefinitionsTopic, next.Version
	next.EpochBase = max(f.EpochBase(), f.Epoch())
	return &Plan{Commit: &next, Rows: next.Rows, InPlace: true}, nil
}

// damage says what is wrong with the table as it is.
func (k *Known) damage() []string {
	out := []string{}
	c := k.Table.Fold.Commit()
	last := viewkeeper.Version(0)
	if all := k.Decisions.List(); len(all) > 0 {
		last = all[len(all)-1].Version
	}
	if k.Table.Begin > 0 {
		out = append(out, (&TruncatedError{k.Table.Begin}).Error())
	}
	switch {
	case c == nil && (k.Committed > 0 || last > 0 || k.Table.version > 0):
		out = append(out, "the table has no commit row")
	case c == nil:
	case c.DefinitionsTopic == k.DefinitionsTopic && k.Committed > int64(c.Version-c.VersionBase):
		out = append(out, fmt.Sprintf("the table is at version %s, and statements up to offset %d are committed as decided", c.Version, k.Committed))
	case k.Table.Fold.Damaged():
		out = append(out, fmt.Sprintf("the definitions are not those that the commit row at version %s sums up: one is missing or is another", c.Version))
	case last > c.Version:
		out = append(out, fmt.Sprintf("the table is at version %s, and the decisions go up to %s", c.Version, last))
	}
	return out
}

// builder is a plan in the making.
type builder struct {
	known  *Known
	source *Source
	plan   *Plan

	rows map[viewkeeper.Name]viewkeeper.Row
	ring *fold.Ring
	// last is the version up to which rows are known, epoch the highest that anything
	// speaks of.
	last  viewkeeper.Version
	epoch viewkeeper.Epoch
	// topic is the definitions topic that the versions count in, base what is added to
	// its offsets; next is the offset after the last one that is known to be decided.
	topic string
	base  viewkeeper.Version
	next  int64
}

// gather puts the source and the decisions after it together.
func (b *builder) gather() error {
	s, r := b.source, &b.plan.Report
	for _, row := range s.Rows {
		b.rows[row.Name] = row
	}
	b.last, b.epoch, b.topic, b.base = s.Version, s.Epoch, s.DefinitionsTopic, s.VersionBase
	ids := map[viewkeeper.Version]codec.ID{}
	decisions := b.known.Decisions.List()
	for i, d := range decisions {
		if d.Format > codec.Format {
			return &NewerFormatError{fmt.Sprintf("the decision of version %s", d.Version)}
		}
		b.epoch = max(b.epoch, d.Epoch)
		if id, ok := idOf(d); ok {
			ids[d.Version] = id
		}
		if d.Version > s.Version || s.DefinitionsTopic == "" {
			b.counts(d)
		}
		if d.Version <= s.Version {
			continue
		}
		if i == 0 && d.Version > s.Version+1 {
			b.missing("no decision of the versions %s to %s is there: what they changed is missing, unless a later one changed it again", s.Version+1, d.Version-1)
		}
		r.Decisions++
		b.last = d.Version
		for _, row := range codec.RowsOf(d) {
			b.rows[row.Name] = row
		}
	}
	b.next = int64(b.last - min(b.base, b.last))
	for _, id := range s.IDs {
		ids[id.Version] = id
	}
	// What the table knows stays known, also of statements that are lost: a fold that has
	// read an id does not forget it before its slot comes round again.
	for id := range b.known.Table.Fold.IDs {
		ids[id.Version] = id
	}
	slots := map[int]bool{}
	for _, v := range slices.Sorted(maps.Keys(ids)) {
		b.ring.Add(ids[v])
		slots[codec.Slot(v)] = true
	}
	for _, n := range slices.Sorted(maps.Keys(slots)) {
		row := b.ring.Row(n, 0)
		r.StatementIDs += len(row.IDs)
		b.plan.Slots = append(b.plan.Slots, row)
	}
	if s.Kind == InTable && b.known.Table.Fold.Damaged() {
		b.missing("definitions of the table itself are gone, or are others than were written, and it does not say which; an export, a node's copy or the decisions have them")
	}
	if n := b.known.Decisions.Unreadable; n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d records of the decisions topic are no decisions and were left out", n))
	}
	if n := b.known.Decisions.FormerOwners; n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d decisions of owners that had been followed by another were left out", n))
	}
	return nil
}

// counts notes which topic's offsets a decision counts in, and from what base.
func (b *builder) counts(d viewkeeper.Decision) {
	base := d.Version - viewkeeper.Version(d.Offset) - 1
	if topic, _, ok := strings.Cut(d.StatementID, ":"); ok {
		b.topic = topic
	} else if base != b.base {
		b.topic = "" // another one from here on, and it does not say which
	}
	b.base = base
}

// idOf gives the id that a decision makes known, so that a statement that is sent again
// is not judged a second time. The text must be whole, and a tombstone's key is not told.
func idOf(d viewkeeper.Decision) (codec.ID, bool) {
	if d.Code == viewkeeper.CodeIDReused || d.Code == viewkeeper.CodeTooLarge || codec.IsDefaultID(d.StatementID) || d.SQL == "" {
		return codec.ID{}, false
	}
	return codec.ID{ID: d.StatementID, Text: codec.HashText(viewkeeper.Submission{SQL: d.SQL}), Version: d.Version}, true
}

func (b *builder) missing(format string, args ...any) {
	b.plan.Report.Missing = append(b.plan.Report.Missing, fmt.Sprintf(format, args...))
}

// place finds the version and the offset to go on from.
func (b *builder) place(ctx context.Context) error {
	k, c, r := b.known, b.plan.Commit, &b.plan.Report
	same := b.topic == k.DefinitionsTopic
	if b.topic == "" {
		// Nothing says which topic it was. One that does not reach as far is another one.
		same = b.next <= k.DefinitionsEnd && k.Committed <= k.DefinitionsEnd
	}
	decided := k.Committed
	if c := k.Table.Fold.Commit(); c != nil && c.DefinitionsTopic == k.DefinitionsTopic {
		decided = max(decided, int64(c.Version-c.VersionBase)) // the group's offset lags
	}
	// covered is the version up to which it is known what became of each statement, next
	// the next offset to judge.
	covered, next := b.last, int64(0)
	switch {
	case !same:
		// Made anew: all of it is still to be judged.
	case b.next > k.DefinitionsEnd || decided > k.DefinitionsEnd:
		r.Notes = append(r.Notes, fmt.Sprintf("the definitions topic ends at offset %d and statements up to %d were decided: it lost its end, and what comes in gets those offsets again", k.DefinitionsEnd, max(b.next, decided)))
		next = k.DefinitionsEnd
	default:
		next = max(b.next, decided)
		if err := b.lost(ctx, b.next, next); err != nil {
			return err
		}
		covered = max(covered, b.base+viewkeeper.Version(next))
	}
	seen := max(covered, k.Table.version)
	for _, n := range k.Nodes {
		if n.Version > covered {
			r.Notes = append(r.Notes, fmt.Sprintf("the node %s (%s) serves version %s, which is more than is known here; 'viewkeeper export' from it has it", n.Node, n.HTTP, n.Version))
		}
		seen, b.epoch = max(seen, n.Version), max(b.epoch, n.Epoch)
	}
	c.Version = seen
	if again := int64(seen - covered); again > 0 {
		// Decided, as far as a commit row counts, and neither finished nor answered. Their
		// owner's successor would have completed them; here they are judged again.
		if same && next+again <= k.DefinitionsEnd {
			r.JudgedAgain = again
		} else {
			b.missing("the versions %s to %s were decided, and nothing says what they changed", covered+1, seen)
		}
		c.Version++
	} else if len(r.Missing) > 0 {
		c.Version++ // another catalog than was there must not have its version
	}
	c.Version = max(c.Version, viewkeeper.Version(next))
	c.VersionBase = c.Version - viewkeeper.Version(next)
	c.DefinitionsTopic = k.DefinitionsTopic

	f := k.Table.Fold
	c.EpochBase = f.EpochBase()
	if b.epoch = max(b.epoch, f.Epoch()); c.EpochBase+viewkeeper.Epoch(f.Next()) < b.epoch {
		c.EpochBase = b.epoch
	}
	return nil
}

// lost lists the statements from one offset up to before another that were decided
// and have no decision. Those that repeat a known one need none.
func (b *builder) lost(ctx context.Context, from, to int64) error {
	if from >= to {
		return nil
	}
	statements, err := b.known.Statements(ctx, from, to)
	if err != nil {
		return err
	}
	known := map[string]codec.TextHash{}
	for _, slot := range b.plan.Slots {
		for _, id := range slot.IDs {
			known[id.ID] = id.Text
		}
	}
	gone := to - from - int64(len(statements))
	for _, s := range statements {
		if hash, ok := known[s.ID]; ok && hash == codec.HashText(s) {
			continue
		}
		b.plan.Report.Lost = append(b.plan.Report.Lost, Lost{s.Offset, b.base + viewkeeper.Version(s.Offset) + 1, s.ID, s.Key, s.SQL})
	}
	if n := len(b.plan.Report.Lost); n > 0 {
		b.missing("%d statements from offset %d on were decided, and no decision of them is there; send them again, with new ids, if they are wanted", n, b.plan.Report.Lost[0].Offset)
	}
	if gone > 0 {
		b.missing("%d statements between the offsets %d and %d were decided, and neither a decision nor their text is there", gone, from, to-1)
	}
	return nil
}

// write lays out what is to be written.
func (b *builder) write() {
	p, f := b.plan, b.known.Table.Fold
	is := f.Commit()
	p.InPlace = is != nil
	// What the table has of a name that the catalog has not would come back with the
	// commit row.
	for name := range b.known.Table.names {
		b.drop(name)
	}
	// Nodes that saw what lay under rubbish before compaction took it have it still.
	under := map[viewkeeper.Name]bool{}
	for _, key := range b.known.Table.Unreadable() {
		if name, ok := codec.RowKey(key); ok {
			under[name] = true
			b.drop(name)
		}
	}
	for _, row := range f.Rows() {
		b.drop(row.Name)
	}
	open := map[viewkeeper.Name]bool{} // what only the commit row has, which is written over
	for _, r := range f.Completion(0) {
		if row, ok := r.(codec.Row); ok {
			open[row.Name] = true
		}
	}
	for _, row := range b.rows {
		if row.Live() {
			p.Report.Definitions++
		}
		was, known := f.Row(row.Name)
		same := known && was.Version == row.Version && codec.HashRow(was) == codec.HashRow(row)
		if !same && (row.Live() || was.Live()) {
			p.Report.Changed++
		}
		_, inTable := b.known.Table.names[row.Name]
		switch {
		case p.InPlace && same && !open[row.Name]:
		case !row.Live() && !known && !inTable && !under[row.Name]: // nobody has it
		default:
			p.Rows = append(p.Rows, row)
		}
	}
	slices.SortFunc(p.Rows, func(x, y viewkeeper.Row) int { return x.Name.Compare(y.Name) })
	if p.InPlace {
		// Its decisions may not be in their topic yet: the next owner completes them.
		goOn := *is
		goOn.Version, goOn.VersionBase, goOn.EpochBase, goOn.DefinitionsTopic = p.Commit.Version, p.Commit.VersionBase, p.Commit.EpochBase, p.Commit.DefinitionsTopic
		goOn.Rows = nil
		p.Commit = &goOn
		if p.Report.Changed > 0 && p.Commit.Version == f.Version() {
			// Nodes that have this version have other rows.
			p.Commit.Version++
			p.Commit.VersionBase++
		}
	} else {
		// What was purged up to where is lost with the commit row: copies of before are to
		// be read anew.
		p.Commit.PurgedThrough = p.Commit.Version
	}
	live := fold.NewLive(nil)
	for _, row := range b.rows {
		live.Put(row)
	}
	p.Commit.Live = live.At(p.Commit.Version)
	p.Remove = b.known.Table.Unreadable()
	p.Report.Version, p.Report.Complete = p.Commit.Version, len(p.Report.Missing) == 0
}

// drop makes a name that the catalog does not have a drop.
func (b *builder) drop(name viewkeeper.Name) {
	if _, ok := b.rows[name]; !ok {
		b.rows[name] = viewkeeper.Row{Name: name, Version: b.plan.Commit.Version}
	}
}

// Nothing reports whether the plan would change nothing that anybody can see.
func (p *Plan) Nothing(k *Known) bool {
	return p.InPlace && len(p.Rows) == 0 && len(p.Remove) == 0 && len(k.Table.Fold.Heal(0)) == 0 && p.Commit.Version == k.Table.Fold.Version()
}

// HealthyError is returned when a table that is well would be written over.
type HealthyError struct {
	Version viewkeeper.Version
	Changed int
}

// Error says what would change.
func (e *HealthyError) Error() string {
	return fmt.Sprintf("the table holds a catalog at version %d and is well; %d definitions would change. --force writes over it", e.Version, e.Changed)
}

// Allowed says whether the plan may be carried out: overwrite allows it to change a
// table that is well, loss to put back what is not complete. A *TruncatedError is
// never allowed.
func (p *Plan) Allowed(k *Known, overwrite, loss bool) error {
	switch {
	case k.Table.Begin > 0:
		return &TruncatedError{k.Table.Begin}
	case p.Report.Version == 0:
		return fmt.Errorf("nothing was ever decided in catalog %s, as far as %s says; there is nothing to put back", k.Catalog, p.Report.Place)
	case p.InPlace && len(p.Report.Damage) == 0 && (p.Report.From != InTable || p.Report.Changed > 0) && !overwrite:
		return &HealthyError{k.Table.Fold.Version(), p.Report.Changed}
	case !p.Report.Complete && !loss:
		return fmt.Errorf("something is missing: %s. With --accept-loss the rest is put back, as version %s", strings.Join(p.Report.Missing, "; "), p.Report.Version)
	}
	return nil
}
