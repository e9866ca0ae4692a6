package viewkeeper

import (
	"fmt"
	"slices"
	"strings"
)

// DefaultSchema is the schema of a name that is written without one.
const DefaultSchema = "main"

// MaxNamePart is the longest part of a definition's name, in bytes.
const MaxNamePart = 63

// Name is the folded name of a relation: a definition's or a base relation's.
// Both parts are in lower case (ASCII folding only, as the engine folds), quoted
// or not when they were written. The zero Name is no name.
type Name struct {
	Schema string
	View   string
}

// MakeName folds both parts; an empty schema becomes [DefaultSchema].
func MakeName(schema, view string) Name {
	if schema == "" {
		schema = DefaultSchema
	}
	return Name{Schema: Fold(schema), View: Fold(view)}
}

// ParseName reads `view`, `schema.view` and their quoted forms. It checks the
// form only, since base relations may have names that a definition may not;
// see [Name.Validate]. The error has code NAME.
func ParseName(s string) (Name, error) {
	parts, err := splitName(s)
	if err != nil {
		return Name{}, err
	}
	switch len(parts) {
	case 1:
		return MakeName("", parts[0]), nil
	case 2:
		return MakeName(parts[0], parts[1]), nil
	}
	return Name{}, Errorf(CodeName, "%q has %d parts; a name is view or schema.view", s, len(parts))
}

func splitName(s string) ([]string, error) {
	var parts []string
	rest := s
	for {
		var part string
		if strings.HasPrefix(rest, `"`) {
			end := 1
			var b strings.Builder
			for {
				i := strings.IndexByte(rest[end:], '"')
				if i < 0 {
					return nil, Errorf(CodeName, "%q: the quoted name does not end", s)
				}
				b.WriteString(rest[end : end+i])
				end += i + 1
				if end < len(rest) && rest[end] == '"' {
					b.WriteByte('"')
					end++
					continue
				}
				break
			}
			part, rest = b.String(), rest[end:]
		} else {
			i := strings.IndexByte(rest, '.')
			if i < 0 {
				i = len(rest)
			}
			part, rest = rest[:i], rest[i:]
			if strings.ContainsAny(part, "\" \t\r\n;") {
				return nil, Errorf(CodeName, "%q is not a name; quote a part that is more than letters, digits and _", s)
			}
		}
		if part == "" {
			return nil, Errorf(CodeName, "%q is not a name; a name is view or schema.view", s)
		}
		parts = append(parts, part)
		if rest == "" {
			return parts, nil
		}
		if rest[0] != '.' {
			return nil, Errorf(CodeName, "%q is not a name; a name is view or schema.view", s)
		}
		rest = rest[1:]
	}
}

// String gives schema.view, each part quoted when it is outside
// [a-z_][a-z0-9_]*. ParseName(n.String()) gives n back.
func (n Name) String() string {
	if n.IsZero() {
		return ""
	}
	return quotePart(n.Schema) + "." + quotePart(n.View)
}

// SQL gives the name with both parts always quoted, safe in any SQL text.
func (n Name) SQL() string {
	return QuoteIdent(n.Schema) + "." + QuoteIdent(n.View)
}

// IsZero reports whether n is no name.
func (n Name) IsZero() bool { return n == Name{} }

// Compare orders names by schema, then view.
func (n Name) Compare(o Name) int {
	if c := strings.Compare(n.Schema, o.Schema); c != 0 {
		return c
	}
	return strings.Compare(n.View, o.View)
}

// MarshalText gives String.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// UnmarshalText reads what ParseName reads; empty text is the zero Name.
func (n *Name) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*n = Name{}
		return nil
	}
	p, err := ParseName(string(b))
	if err == nil {
		*n = p
	}
	return err
}

// Reserved views and schemas: what the engine, the clients' catalogs and
// viewkeeper itself use.
var (
	reservedPrefixes = []string{"__", "vk_", "duckdb_", "sqlite_", "pg_", "pragma_"}
	reservedSchemas  = []string{"vk", "information_schema", "pg_catalog", "temp", "system"}
)

// Validate reports whether n may be a definition's name, by docs/language.md: each
// part matches [a-z_][a-z0-9_]{0,62}, and neither is reserved. The error has code
// NAME. That base relations are reserved too is the catalog's to check.
func (n Name) Validate() error {
	for _, part := range []struct{ what, text string }{{"schema", n.Schema}, {"view", n.View}} {
		if !isPlainPart(part.text) {
			return Errorf(CodeName, "the %s name %s is outside [a-z_][a-z0-9_]*; use lower-case letters, digits and _", part.what, QuoteIdent(part.text))
		}
		if len(part.text) > MaxNamePart {
			return Errorf(CodeName, "the %s name %s is %d bytes long; the limit is %d", part.what, part.text, len(part.text), MaxNamePart)
		}
		for _, p := range reservedPrefixes {
			if strings.HasPrefix(part.text, p) {
				return Errorf(CodeName, "%s is reserved: names that start with %s are not for definitions; choose another name", n, p)
			}
		}
	}
	if slices.Contains(reservedSchemas, n.Schema) {
		return Errorf(CodeName, "%s is reserved: the schema %s is not for definitions; choose another schema", n, n.Schema)
	}
	if n.View == "source" {
		return Errorf(CodeName, "%s is reserved: source is what {source} stands for; choose another name", n)
	}
	return nil
}

// Fold puts ASCII letters in lower case and leaves all else as it is, which is
// how the engine compares names.
func Fold(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for ; i < len(b); i++ {
				if 'A' <= b[i] && b[i] <= 'Z' {
					b[i] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}

// QuoteIdent quotes s as a SQL identifier.
func QuoteIdent(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

func quotePart(s string) string {
	if isPlainPart(s) {
		return s
	}
	return QuoteIdent(s)
}

func isPlainPart(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// CatalogName checks a catalog's name, [a-z][a-z0-9-]{0,62}.
func CatalogName(s string) error {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c < 'a' || c > 'z') && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return fmt.Errorf("catalog name %q: use a lower-case letter, then letters, digits and -", s)
		}
	}
	if s == "" || len(s) > 63 {
		return fmt.Errorf("catalog name %q: 1 to 63 characters", s)
	}
	return nil
}
