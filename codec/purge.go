package codec

import "github.com/viewkeeper/viewkeeper"

// The headers of a Purge on the table.
const (
	HeaderPurged      = "purged" // the drop row's version
	HeaderPurgedEpoch = "epoch"
)

// TableHeaders gives the headers that a record of the table has; only a Purge has any.
func TableHeaders(r Record) []Header {
	p, ok := r.(Purge)
	if !ok {
		return nil
	}
	return []Header{{HeaderPurged, []byte(p.Version.String())}, {HeaderPurgedEpoch, []byte(p.Epoch.String())}}
}

// DecodeTable reads a record of the table with its headers, by which alone a Purge is
// told from a stranger's Tombstone. Like DecodeRecord it never fails.
func DecodeTable(key string, value []byte, headers []Header) Record {
	if value != nil || len(headers) == 0 {
		return DecodeRecord(key, value)
	}
	name, ok := RowKey(key)
	if !ok {
		return Tombstone{TableKey: key}
	}
	p, seen := Purge{Name: name}, 0
	for _, h := range headers {
		n, err := viewkeeper.ParseVersion(string(h.Value))
		switch {
		case err != nil:
			continue
		case h.Key == HeaderPurged:
			p.Version = n
			seen |= 1
		case h.Key == HeaderPurgedEpoch:
			p.Epoch = viewkeeper.Epoch(n)
			seen |= 2
		}
	}
	if seen != 3 {
		return Tombstone{TableKey: key}
	}
	return p
}
