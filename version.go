package viewkeeper

import "strconv"

// Version is a catalog's version: the version base + the offset of the last
// decided record + 1, whatever its verdict. It is never reused and never goes
// back. A definition's version is that of the statement that last changed its
// row. 0 is the catalog before any statement, and of a definition: not there.
type Version uint64

// String gives the version in decimal.
func (v Version) String() string { return strconv.FormatUint(uint64(v), 10) }

// ParseVersion reads what String gives.
func ParseVersion(s string) (Version, error) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, Errorf(CodeSyntax, "%q is not a version; a version is a whole number from 0", s)
	}
	return Version(n), nil
}

// Epoch counts the owners of a catalog: the epoch base + the offset of the
// owner's fence + 1. Every row and decision carries its owner's. 0 is no owner.
type Epoch uint64

// String gives the epoch in decimal.
func (e Epoch) String() string { return strconv.FormatUint(uint64(e), 10) }
