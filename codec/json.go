package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// marshal writes v as JSON with < > and & as they are, and extra merged into it.
//
// It can't fail: every value that it gets is one of this package's wire structs,
// whose strings, numbers and lists always marshal, whose times went through
// jsonTime, and whose extra went through mergeExtra.
func marshal(v any, extra map[string]json.RawMessage) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Unreachable, see above. A nil value would be a tombstone in the table.
		panic(fmt.Sprintf("codec: marshalling %T: %v", v, err))
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if len(extra) > 0 {
		out = mergeExtra(out, extra)
	}
	return out
}

// unmarshal reads exactly one JSON value, and gives the fields that T does not know.
func unmarshal[T any](data []byte) (T, map[string]json.RawMessage, error) {
	v, err := strictly[T](data)
	if err == nil || errors.Is(err, errMore) {
		return v, nil, err
	}
	// Something is unknown or wrong; the lax way tells which. It starts afresh,
	// since the strict one may have filled half of v.
	var lax T
	if err := json.Unmarshal(data, &lax); err != nil {
		return lax, nil, err
	}
	return lax, leftOver(data, marshal(lax, nil)), nil
}

var errMore = errors.New("more than one JSON value")

// strictly reads exactly one JSON value of fields that T knows.
func strictly[T any](data []byte) (v T, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return v, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return v, errMore
	}
	return v, nil
}

// leftOver gives what is in data and not in known, both JSON objects: whole
// fields, and inside fields that both have, the same again. Inside lists of the
// same length it goes by element, with null where nothing is left over.
func leftOver(data, known []byte) map[string]json.RawMessage {
	var all, have map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil || json.Unmarshal(known, &have) != nil {
		return nil
	}
	var rest map[string]json.RawMessage
	for key, value := range all {
		left := value
		if in, ok := have[key]; ok {
			left = leftOverValue(value, in)
		} else if foldsTo(key, have) {
			// encoding/json takes VERSION for version. Writing it back beside the
			// known field would shadow that field's next value.
			continue
		}
		if left != nil {
			if rest == nil {
				rest = map[string]json.RawMessage{}
			}
			rest[key] = left
		}
	}
	return rest
}

func leftOverValue(value, known json.RawMessage) json.RawMessage {
	switch {
	case isObject(value) && isObject(known):
		if rest := leftOver(value, known); rest != nil {
			return marshal(rest, nil)
		}
	case isList(value) && isList(known):
		var all, have []json.RawMessage
		if json.Unmarshal(value, &all) != nil || json.Unmarshal(known, &have) != nil || len(all) != len(have) {
			return nil
		}
		some := false
		for i := range all {
			all[i] = leftOverValue(all[i], have[i])
			some = some || all[i] != nil
		}
		if some {
			return marshal(all, nil)
		}
	}
	return nil
}

// mergeExtra adds extra to the JSON object known. Where both have a value the
// known one stays, and only the insides of objects and of lists of the same
// length are merged.
func mergeExtra(known []byte, extra map[string]json.RawMessage) []byte {
	var have map[string]json.RawMessage
	if json.Unmarshal(known, &have) != nil {
		return known
	}
	for key, value := range extra {
		if !json.Valid(value) {
			continue
		}
		in, ok := have[key]
		switch {
		case !ok && !foldsTo(key, have):
			have[key] = value
		case ok:
			have[key] = mergeValue(in, value)
		}
	}
	return marshal(have, nil)
}

func mergeValue(known, extra json.RawMessage) json.RawMessage {
	switch {
	case isObject(known) && isObject(extra):
		var fields map[string]json.RawMessage
		if json.Unmarshal(extra, &fields) == nil {
			return mergeExtra(known, fields)
		}
	case isList(known) && isList(extra):
		var have, more []json.RawMessage
		if json.Unmarshal(known, &have) != nil || json.Unmarshal(extra, &more) != nil || len(have) != len(more) {
			return known
		}
		for i := range have {
			have[i] = mergeValue(have[i], more[i])
		}
		return marshal(have, nil)
	}
	return known
}

// foldsTo reports whether have holds key in another spelling of case.
func foldsTo(key string, have map[string]json.RawMessage) bool {
	for k := range have {
		if strings.EqualFold(k, key) {
			return true
		}
	}
	return false
}

func isObject(v json.RawMessage) bool { return firstByte(v) == '{' }
func isList(v json.RawMessage) bool   { return firstByte(v) == '[' }

func firstByte(v json.RawMessage) byte {
	if v = bytes.TrimLeft(v, " \t\r\n"); len(v) > 0 {
		return v[0]
	}
	return 0
}

// jsonTime gives t in UTC, or the zero time where JSON has no way to write it: a
// producer may stamp its records with any 64 bits.
func jsonTime(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}
