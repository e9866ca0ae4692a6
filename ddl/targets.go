package ddl

import "github.com/viewkeeper/viewkeeper"

// Targets gives the names that a text is about, in the order written, and none when
// it does not parse.
func Targets(text string) []viewkeeper.Name {
	st, err := Parse(text)
	if err != nil {
		return nil
	}
	return st.Targets()
}
