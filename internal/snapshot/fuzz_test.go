package snapshot_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime/metrics"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/internal/snapshot"
)

// readWithinMemory reads a file, and fails if that needs more memory than its size allows.
func readWithinMemory(t *testing.T, text []byte) {
	t.Helper()
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(allocated)
	before := allocated[0].Value.Uint64()
	if file, err := open(text); err == nil {
		_ = file.Verify(t.Context())
	}
	metrics.Read(allocated)
	const fixed = 128 << 20 // the index of a small file, and the decoder, which is reused
	if cost := allocated[0].Value.Uint64() - before; cost > fixed+1024*uint64(len(text)) {
		t.Errorf("reading a file of %d bytes allocated %d bytes, want at most %d", len(text), cost,
			fixed+1024*len(text))
	}
}

// TestIndexThatGrows verifies that small files with indexes that would need gigabytes are rejected.
func TestIndexThatGrows(t *testing.T) {
	const many = 4 << 20
	names := strings.Builder{}
	for i := range many / 8 {
		fmt.Fprintf(&names, `"%x":0,`, i)
	}
	for name, index := range map[string]string{
		"types":     `{"types":[` + strings.Repeat(`{},`, many) + `{}]}`,
		"redacted":  `{"redacted":[` + strings.Repeat(`{},`, many) + `{}]}`,
		"requires":  `{"types":[],"requires":[` + strings.Repeat(`"",`, many) + `""]}`,
		"documents": `{"server":{"documents":{` + names.String() + `"":0}}}`,
		"blocks": `{"types":[{"version":"v1","resource":"a","kind":"A","blocks":[` + strings.Repeat(`{},`,
			many) + `{}]}]}`,
		"names": `{"types":[{"version":"v1","resource":"a","kind":"A","shortNames":[` +
			strings.Repeat(`"",`, many) + `""]}]}`,
		"missing": `{"types":[{"version":"v1","resource":"a","kind":"A","missing":{"details":{"causes":[` +
			strings.Repeat(`{},`, many) + `{}]}}}]}`,
		"a server": `{"server":{},"tool":"server","types":[` + strings.Repeat(`{},`, many) + `{}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			readWithinMemory(t, snapshot.CompressedIndex([]byte(index)))
		})
	}
	head := append([]byte{0, 0x80, 0x40, 0}, make([]byte, 12*8192)...)
	record := append([]byte("O"), snapshot.Section(0, len(head), head)...)
	record = append(record, snapshot.Section(0, 0, nil)...)
	frame := snapshot.Frame(record)
	readWithinMemory(t, snapshot.Assemble(frame, fmt.Appendf(nil, `{"types":[{"version":"v1","resource":"a","kind":"A",`+
		`"objects":8192,"blocks":[{"at":32,"stored":%d,"objects":8192,"first":"","last":""}]}]}`, len(frame))))
}

// FuzzFile verifies that reading any file needs no more memory than its size allows.
func FuzzFile(f *testing.F) {
	f.Add(snapshotOf(f, 3))
	f.Add(snapshot.Assemble(snapshot.Frame(snapshot.Bomb(1<<20)),
		[]byte(`{"types":[{"version":"v1","resource":"a","kind":"A","objects":1,"blocks":[{"at":32,"stored":99,"objects":1,"first":"a","last":"a"}]}]}`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		readWithinMemory(t, text)
	})
}

// FuzzIndex is like FuzzFile, but builds files with valid checksums from the input.
func FuzzIndex(f *testing.F) {
	f.Add(snapshot.RecordOf("a")[1:],
		[]byte(`{"types":[{"version":"v1","resource":"a","kind":"A","objects":1,"blocks":[{"at":32,"stored":23,"objects":1,"first":"a","last":"a"}]}]}`))
	f.Fuzz(func(t *testing.T, block, index []byte) {
		readWithinMemory(t, snapshot.Assemble(snapshot.Frame(append([]byte("O"), block...)), index))
	})
}

// FuzzAdd verifies that an added object is read back with the same members.
func FuzzAdd(f *testing.F) {
	for _, seed := range []string{`{"apiVersion":"v1","kind":"A","metadata":{"name":"a"}}`,
		`{"metadata":{"name":"a"},"apiVersion":"v1"}`, `{"apiVersion":"v1"}`, `{"metadata":{"name":[]}}`, ` { "kind" : "A" , "apiVersion" : "b" , "metadata" : {"name":"\u0061"} } `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		var out bytes.Buffer
		w := snapshot.NewWriter(&out, snapshot.Origin{})
		section := w.BeginType(gizmos)
		if section.Add(object) != nil {
			return
		}
		noError(t, errors.Join(section.Close(""), w.Commit()))
		file, err := open(out.Bytes())
		noError(t, err)
		all, err := readAll(file)
		if err != nil || len(all) != 1 {
			t.Fatalf("the section has %v, %v, want 1 object", all, err)
		}
		for _, text := range all {
			if want, got := decodeJSON(t, object), decodeJSON(t, []byte(text)); !isEqual(want, got) {
				t.Errorf("%s was read back as %s", object, text)
			}
		}
	})
}

// FuzzLists verifies that each list that a server may send is read back completely: by key, and in its order.
// A list can have objects in any order, and several with one key.
func FuzzLists(f *testing.F) {
	f.Add("a/x\na/x\na/x")
	f.Add("b/x\na/y\na/x\nz\n/\u00e9\na/x")
	f.Add(strings.Repeat("olm/shared\n", 9000))
	f.Fuzz(func(t *testing.T, text string) {
		var out bytes.Buffer
		w := snapshot.NewWriter(&out, snapshot.Origin{})
		section := w.BeginType(gizmos)
		var want []string
		for i, line := range strings.Split(text, "\n") {
			namespace, name, _ := strings.Cut(line, "/")
			if err := section.Add(gizmo(namespace, name, fmt.Sprint(i))); err != nil {
				t.Fatal(err) // also of an object without a name
			}
			want = append(want, fmt.Sprintf(`"text":"%d"`, i))
		}
		noError(t, errors.Join(section.Close("1"), w.Commit()))
		file, err := open(out.Bytes())
		noError(t, err)
		got, lastKey, read, isOrdered := make([]string, len(want)), "", 0, true
		objects := file.Objects(gizmos.GVR().GroupResource())
		for record, err := range objects.All {
			noError(t, err)
			if record.Key < lastKey {
				t.Errorf("%q comes after %q", record.Key, lastKey)
			}
			if record.Key != lastKey {
				if found, ok, err := objects.Get(record.Key); !ok || err != nil || found.Key != record.Key {
					t.Errorf("Get(%q) = %q, %v, %v", record.Key, found.Key, ok, err)
				}
			}
			isOrdered = isOrdered && record.Position == read && (read == 0 || record.Key != lastKey)
			read++
			lastKey, got[record.Position] = record.Key, string(record.JSON)
		}
		if objects.Ordered() != isOrdered {
			t.Errorf("Ordered() = %v, want %v", objects.Ordered(), isOrdered)
		}
		for i := range want {
			if !strings.Contains(got[i], want[i]) {
				t.Errorf("object %d was read back as %s", i, got[i])
			}
		}
	})
}

// TestInvalidType verifies that a Writer refuses a type that a reader would refuse.
func TestInvalidType(t *testing.T) {
	w := snapshot.NewWriter(&bytes.Buffer{}, snapshot.Origin{})
	for _, invalid := range []snapshot.Type{{}, {Version: "v1", Resource: "a"}, {Resource: "a", Kind: "A"}} {
		if w.AddMissing(invalid, metav1.Status{}, false) == nil || w.BeginType(invalid).Close("") == nil {
			t.Errorf("the writer accepts the type %+v", invalid)
		}
	}
}

// decodeJSON returns an object with the members that Add adds.
func decodeJSON(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		t.Fatalf("the snapshot has invalid JSON %s: %v", text, err)
	}
	for name, value := range map[string]string{"apiVersion": "example.com/v1", "kind": "Gizmo"} {
		if text, isString := object[name].(string); !isString || text == "" {
			object[name] = value
		}
	}
	return object
}

func isEqual(a, b map[string]any) bool { return reflect.DeepEqual(a, b) }

var gizmos = snapshot.Type{Group: "example.com", Version: "v1", Resource: "gizmos", Kind: "Gizmo",
	Namespaced: true}

// gizmo returns an object as API servers send it.
func gizmo(namespace, name, text string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"example.com/v1","kind":"Gizmo","metadata":{"name":%q,"namespace":%q,"uid":"u"},"spec":{"text":%q}}`, name, namespace, text)
}

// snapshotOf returns a snapshot of n gizmos, and a missing type.
func snapshotOf(tb testing.TB, n int) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := snapshot.NewWriter(&out, snapshot.Origin{Tool: "test", Server: snapshot.Server{Host: "there"}})
	section := w.BeginType(gizmos)
	for i := range n {
		noError(tb, section.Add(gizmo("web", fmt.Sprintf("g-%06d", i), fmt.Sprintf("%0300d", i*7919))))
	}
	noError(tb, section.Close("17"))
	why := metav1.Status{Code: 403, Reason: metav1.StatusReasonForbidden, Message: "no"}
	if err := w.AddMissing(snapshot.Type{Version: "v1", Resource: "secrets", Kind: "Secret"}, why,
		false); err != nil {
		tb.Fatal(err)
	}
	noError(tb, w.Commit())
	return out.Bytes()
}

func open(text []byte) (*snapshot.File, error) {
	return snapshot.NewFile(bytes.NewReader(text), int64(len(text)))
}

func readAll(f *snapshot.File) (map[string]string, error) {
	objects := map[string]string{}
	for _, saved := range f.Contents().Types {
		for r, err := range f.Objects(saved.GVR().GroupResource()).All {
			if err != nil {
				return objects, err
			}
			objects[saved.Resource+" "+r.Key] = string(r.JSON)
		}
	}
	return objects, nil
}

func apiVersionOf(t *testing.T, object []byte) string {
	t.Helper()
	var typ metav1.TypeMeta
	noError(t, json.Unmarshal(object, &typ))
	return typ.APIVersion
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
