package registry

import (
	"encoding/json"
	"reflect"
	"testing"
	"testing/quick"
)

// asJSON makes an empty list and none the same.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var any any
	if err := json.Unmarshal(text, &any); err != nil {
		t.Fatal(err)
	}
	text, err = json.Marshal(pruned(any))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func pruned(v any) any {
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			v[i] = pruned(v[i])
		}
	case map[string]any:
		for k := range v {
			if v[k] = pruned(v[k]); v[k] == nil {
				delete(v, k)
			}
		}
	}
	return v
}

// TestPackedParsed packs whatever a planner could say: a field that is new and not
// packed is found here.
func TestPackedParsed(t *testing.T) {
	check := func(q Parsed) bool {
		q.Err = nil
		bare := q
		bare.Scopes = nil
		packed := packParsed(&bare, packScopes(q.Scopes))
		got, scopes, ok := unpackParsed(string(packed))
		got.Scopes = unpackScopes(scopes)
		if a, b := asJSON(t, got), asJSON(t, q); !ok || a != b {
			t.Logf("got  %s\nwant %s", a, b)
			return false
		}
		for i := range packed { // nothing that is cut off is taken
			if _, _, ok := unpackParsed(string(packed[:i])); ok {
				return false
			}
		}
		return true
	}
	if err := quick.Check(check, &quick.Config{MaxCount: 200}); err != nil {
		t.Fatal(err)
	}
}

// TestPackedAll holds the packed form to the fields that there are: quick fills no
// field that is not exported.
func TestPackedAll(t *testing.T) {
	if n := reflect.TypeFor[planned]().NumField(); n != 3 {
		t.Errorf("planned has %d fields; packPlanned knows columns and extract, and packs no failure", n)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add("")
	f.Add(string(packParsed(&Parsed{References: []TableRef{{View: "v"}}, Leaves: 3}, packScopes([]Scope{{Items: []Item{{Name: "a"}}}}))))
	f.Fuzz(func(t *testing.T, text string) {
		if q, scopes, ok := unpackParsed(text); ok {
			again, _, _ := unpackParsed(string(packParsed(&q, scopes)))
			if !reflect.DeepEqual(q, again) {
				t.Errorf("%+v and %+v", q, again)
			}
			unpackScopes(scopes)
		}
		unpackPlanned(text)
	})
}
