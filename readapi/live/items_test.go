package live

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// FuzzItems reads lists in pieces, and compares with encoding/json.
func FuzzItems(f *testing.F) {
	for _, text := range []string{
		`{"apiVersion":"v1","items":[{"metadata":{"name":"a","namespace":"b"}},{"metadata":{"name":"c"}}],"kind":"List","metadata":{"resourceVersion":"1"}}`,
		`{"kind":"Table","metadata":{"resourceVersion":"1"},"columnDefinitions":[{}],"rows":[{"cells":["a"],"object":{"metadata":{"name":"ü\"x"}}}]}` + "\n",
		`{"items":[]}`, `{"items":[ ] , "metadata" : {} }`, `{"metadata":{},"items":null}`, `{}`, `[]`, ``, `{"items":[{}]}`, `{"items":[{"metadata":{"name":"a"}},`,
		`{"items":[{"metadata":{"name":"a"}}]`, `{"items":[{"metadata":{"name":"a"}}],"a":1,}`, `{"items":[1,2]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		want, err := readItems(iotest.OneByteReader(bytes.NewReader(text)))
		got, other := readItems(bytes.NewReader(text))
		if (err == nil) != (other == nil) || cmp.Diff(want, got) != "" {
			t.Fatalf("in pieces %v, and %v", err, other)
		}
		if err != nil {
			return
		}
		var list map[string]json.RawMessage
		if err := json.NewDecoder(bytes.NewReader(text)).Decode(&list); err != nil {
			t.Fatalf("read, although %v", err)
		}
		var items []json.RawMessage
		name := "items"
		if strings.Contains(string(text), `"rows"`) {
			return // either may be the name
		}
		if err := json.Unmarshal(list[name], &items); err != nil || len(items) != len(got) {
			t.Errorf("%d items, want %d (%v)", len(got), len(items), err)
		}
	})
}

// readItems are the keys and texts of all items.
func readItems(r io.Reader) (all []string, err error) {
	l, err := newItemReader(r)
	for err == nil && l.item != nil {
		all = append(all, l.key+" "+string(l.item))
		err = l.next()
	}
	return all, err
}

// TestLargeItems reads items that are larger than what is read at once.
func TestLargeItems(t *testing.T) {
	large := strings.Repeat("x", 3*itemBuffer)
	all, err := readItems(strings.NewReader(`{"items":[{"metadata":{"name":"a"},"b":"` + large + `"},{"metadata":{"name":"c"}}],"d":"` + large + `"}`))
	if err != nil || len(all) != 2 || len(all[0]) < len(large) {
		t.Errorf("%d items, %v", len(all), err)
	}
}
