package duckdb

import (
	"unsafe"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// stringAt copies the row-th string of a VARCHAR vector's data.
func stringAt(data unsafe.Pointer, row int) string {
	s := (*bindings.StringT)(unsafe.Add(data, row*int(unsafe.Sizeof(bindings.StringT{}))))
	return bindings.StringTData(s)
}
