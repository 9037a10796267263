package snapshot_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/crdcache/crdcache/snapshot"
)

// FuzzFile reads whatever is in a file: there is an error or an end, and no more than its size justifies.
func FuzzFile(f *testing.F) {
	f.Add(written(f, 3))
	f.Add(snapshot.Assemble(snapshot.Bomb(1<<20), []byte(`{"types":[{"version":"v1","resource":"a","kind":"A","objects":1,"blocks":[{"at":16,"stored":99,"objects":1,"first":"a","last":"a"}]}]}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		if file, err := open(text); err == nil {
			_, _ = readAll(file)
		}
	})
}

// FuzzIndex is FuzzFile behind the checksums.
func FuzzIndex(f *testing.F) {
	f.Add([]byte("\x01\x01\x02\x00a{}"), []byte(`{"types":[{"version":"v1","resource":"a","kind":"A","objects":1,"blocks":[{"at":16,"stored":23,"objects":1,"first":"a","last":"a"}]}]}`))
	f.Fuzz(func(t *testing.T, block, index []byte) {
		if file, err := open(snapshot.Assemble(snapshot.Frame('O', block), index)); err == nil {
			_, _ = readAll(file)
		}
	})
}

// FuzzAdd: what a section takes is read again, as JSON with the same members.
func FuzzAdd(f *testing.F) {
	for _, seed := range []string{`{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`, `{"metadata":{"name":"a"},"apiVersion":"v1"}`, `{"apiVersion":"v1"}`, ` { "kind" : "A" , "apiVersion" : "b" , "metadata" : {"name":"\u0061"} } `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		var out bytes.Buffer
		w := snapshot.NewWriter(&out, snapshot.About{})
		section := w.Begin(gizmos)
		if section.Add(object, nil) != nil {
			return
		}
		if err := errors.Join(section.Close(""), w.Commit()); err != nil {
			t.Fatal(err)
		}
		file, err := open(out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		all, err := readAll(file)
		if err != nil || len(all) != 1 {
			t.Fatalf("%v, %v", all, err)
		}
		for _, text := range all {
			if want, got := decoded(t, object), decoded(t, []byte(text)); !same(want, got) {
				t.Errorf("%s became %s", object, text)
			}
		}
	})
}

// decoded is an object without what a section may change.
func decoded(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	delete(object, "apiVersion")
	if object["kind"] == nil || object["kind"] == "Gizmo" {
		delete(object, "kind")
	}
	return object
}

func same(a, b map[string]any) bool { return reflect.DeepEqual(a, b) }
