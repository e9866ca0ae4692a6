package ddl

import "github.com/viewkeeper/viewkeeper"

// Limits bound the size of what is submitted, in bytes as submitted. A node
// applies them where a statement comes in, the judge in any case.
type Limits struct {
	// MaxBody bounds the query of a plain definition, comments included, and each
	// query option of a materialized one.
	MaxBody int
	// MaxChangeSet bounds the whole text: a statement or a change set.
	MaxChangeSet int
}

// DefaultLimits are those of the language.
func DefaultLimits() Limits { return Limits{MaxBody: 64 << 10, MaxChangeSet: 512 << 10} }

// CheckText refuses a text over the limit, with code TOO_LARGE.
func (l Limits) CheckText(text string) error {
	if len(text) > l.MaxChangeSet {
		return viewkeeper.Errorf(viewkeeper.CodeTooLarge,
			"the text has %d bytes; the limit for a statement or a change set is %d; split it into several change sets", len(text), l.MaxChangeSet)
	}
	return nil
}

func (l Limits) checkBody(name viewkeeper.Name, what string, at, size int) *viewkeeper.Error {
	if size <= l.MaxBody {
		return nil
	}
	err := viewkeeper.ErrorAt(at, viewkeeper.CodeTooLarge,
		"%s of %s has %d bytes; the limit for a query is %d; move parts of it into views of their own", what, name, size, l.MaxBody)
	err.Name = name
	return err
}
