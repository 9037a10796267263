package packed_test

import (
	"encoding/json"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
)

func pack(t testing.TB, data string) *packed.Object {
	t.Helper()
	o, err := (*packed.Packer)(nil).Pack([]byte(data))
	must(t, err)
	return o
}

// TestBytesAreCopied verifies that an object does not change when its packed bytes are overwritten, as the
// next frame of a watch does.
func TestBytesAreCopied(t *testing.T) {
	for _, document := range documents() {
		data := []byte(document)
		o, err := testPackers(t)["presets"].Pack(data)
		if err != nil {
			continue
		}
		key, want := strings.Clone(o.Key()), summarizeMetadata(o)
		before, err := o.Decode()
		must(t, err)
		for i := range data {
			data[i] = '#'
		}
		after, err := o.Decode()
		if err != nil || !reflect.DeepEqual(before.Object, after.Object) || o.Key() != key ||
			!cmp.Equal(want, summarizeMetadata(o)) {
			t.Fatalf("%.200s changed when its source bytes were overwritten (%v)", document, err)
		}
	}
}

// TestCopiesAreIndependent changes decoded objects, which callers must not do, and checks that the packed
// object is unaffected.
func TestCopiesAreIndependent(t *testing.T) {
	o := pack(t, string(certificate(1)))
	want, err := o.Decode()
	must(t, err)
	text, _ := o.JSON()
	text = strings.Clone(text)
	for _, u := range []*unstructured.Unstructured{o.Unstructured(), want.DeepCopy()} {
		u.SetName("changed")
		u.SetLabels(nil)
		spec := u.Object["spec"].(map[string]any)
		spec["dnsNames"].([]any)[0] = "changed"
		clear(spec)
	}
	if now, _ := o.JSON(); now != text || o.Key() != "tenant-1/certificate-1" {
		t.Error("changing a decoded object changed the JSON")
	}
	got, err := o.Decode()
	must(t, err)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Errorf("unpacked object (-want +got):\n%s", diff)
	}
}

// TestDecodedIsWeak checks that an unreferenced decoded copy is freed, and decoded again when needed.
func TestDecodedIsWeak(t *testing.T) {
	o := pack(t, string(certificate(1)))
	gone := make(chan struct{})
	runtime.AddCleanup(o.Unstructured(), func(c chan struct{}) { close(c) }, gone)
	for collected := false; !collected; {
		runtime.GC()
		select {
		case <-gone:
			collected = true
		default:
		}
	}
	if o.Decoded() != nil {
		t.Error("the unreferenced decoded copy was not freed")
	}
	if name := o.Unstructured().GetName(); name != "certificate-1" {
		t.Errorf("Unstructured() has the name %q, want certificate-1", name)
	}
}

func TestSettersPanic(t *testing.T) {
	o := pack(t, string(certificate(1)))
	for name, set := range map[string]func(){
		"SetName": func() { o.SetName("") }, "SetLabels": func() { o.SetLabels(nil) },
		"SetManagedFields":   func() { o.SetManagedFields(nil) },
		"SetAnnotations":     func() { o.SetAnnotations(nil) },
		"SetResourceVersion": func() { o.SetResourceVersion("") },
		"SetNamespace":       func() { o.SetNamespace("") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			set()
		}()
	}
	if o.DeepCopyObject() != o {
		t.Error("DeepCopyObject copied an immutable object")
	}
}

// content is an object with a value.
func content(value any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "K", "metadata": map[string]any{"name": "a",
		"namespace": "b", "uid": "u", "resourceVersion": "7", "labels": map[string]any{"l": "m"}},
		"value": value}
}

func TestFromUnstructured(t *testing.T) {
	deep := any("bottom")
	for range 5000 {
		deep = []any{deep}
	}
	tests := map[string]struct {
		value any
		kept  bool // JSON cannot represent it
	}{
		"null": {value: nil}, "bool": {value: true}, "string": {value: "a\"\\\n\t\r\x01\u2028<é😀"},
		"integer":     {value: int64(math.MinInt64)},
		"whole float": {value: 1.0}, "float": {value: 0.1}, "large float": {value: 1e300},
		"larger than any integer": {value: 1e20}, "small float": {value: -5e-324},
		"negative zero": {value: math.Copysign(0, -1)},
		"list": {value: []any{int64(1), []any{},
			map[string]any{}}}, "empty key": {value: map[string]any{"": "x"}},
		"int": {value: 1, kept: true}, "uint": {value: uint8(1), kept: true}, "NaN": {value: math.NaN(),
			kept: true}, "infinite": {value: math.Inf(-1), kept: true},
		"not UTF-8": {value: "\xff", kept: true}, "key not UTF-8": {value: map[string]any{"\xff": "x"},
			kept: true}, "json.Number": {value: json.Number("1"), kept: true},
		"strings": {value: []string{"a"}, kept: true}, "string map": {value: map[string]string{"a": "b"},
			kept: true}, "nil map": {value: map[string]any(nil), kept: true},
		"nil list": {value: []any(nil), kept: true},
		"deep":     {value: deep, kept: true}, "nested": {value: map[string]any{"a": []any{1}}, kept: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: content(test.value)}
			o, err := (*packed.Packer)(nil).FromUnstructured(u)
			must(t, err)
			if o.Key() != "b/a" || o.GetName() != "a" || o.GetNamespace() != "b" || o.GetUID() != "u" ||
				o.GetResourceVersion() != "7" || o.Labels().Get("l") != "m" || o.GetKind() != "K" {
				t.Errorf("identity = %q, %q, %q, %q and %q; want b/a, u, 7, m and K", o.Key(), o.GetUID(),
					o.GetResourceVersion(),
					o.Labels().Get("l"), o.GetKind())
			}
			got := o.Unstructured()
			if name != "deep" && name != "NaN" {
				if diff := cmp.Diff(u.Object, got.Object); diff != "" {
					t.Errorf("unpacked object (-want +got):\n%s", diff)
				}
			}
			if kept := got == u; kept != test.kept {
				t.Errorf("the object was returned unpacked: %v, want %v", kept, test.kept)
			}
			if private, err := o.Decode(); err != nil || private == u {
				t.Errorf("Decode() returned the original object or the error %v", err)
			}
			if o.Size() <= 0 {
				t.Errorf("Size() = %d, want more than 0", o.Size())
			}
		})
	}
	if _, err := (*packed.Packer)(nil).FromUnstructured(nil); err == nil {
		t.Error("FromUnstructured(nil) succeeded, want an error")
	}
}

// TestOriginalJSON verifies that objects that could not be packed are encoded on demand.
func TestOriginalJSON(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{{1, `"value":1`}, {[]string{"a"}, `"value":["a"]`}, {make(chan int), ""}} {
		o, err := (*packed.Packer)(nil).FromUnstructured(
			&unstructured.Unstructured{Object: content(test.value)})
		must(t, err)
		text, err := o.AppendJSON([]byte("before"))
		if (err == nil) != (test.want != "") || !strings.Contains(string(text), test.want) || err == nil &&
			!strings.HasPrefix(string(text), "before{") {
			t.Errorf("%v: AppendJSON() = %s, %v, want a text with %q", test.value, text, err, test.want)
		}
		if _, ok := o.JSON(); ok {
			t.Errorf("%v: JSON() = true, want false", test.value)
		}
		if err := o.ReadJSON(func([]byte) error { return nil }); (err == nil) != (test.want != "") {
			t.Errorf("%v: ReadJSON() = %v, want success: %v", test.value, err, test.want != "")
		}
	}
}

func TestListIsAList(t *testing.T) {
	n := int64(5)
	list := &packed.List{Items: []*packed.Object{pack(t, string(certificate(1))),
		pack(t, string(certificate(2)))}}
	list.SetResourceVersion("12")
	list.SetRemainingItemCount(&n)
	list.APIVersion, list.Kind = "v1", "List"
	for _, l := range []any{list, list.DeepCopyObject()} {
		m, err := meta.ListAccessor(l)
		if err != nil || m.GetResourceVersion() != "12" || *m.GetRemainingItemCount() != 5 {
			t.Fatalf("list metadata: got %v, %v", m, err)
		}
	}
	items, err := meta.ExtractListWithAlloc(list)
	if err != nil || len(items) != 2 || items[1] != list.Items[1] || meta.LenList(list) != 2 {
		t.Errorf("ExtractListWithAlloc = %d items, %v; want 2", len(items), err)
	}
	copied := list.DeepCopyObject().(*packed.List)
	copied.Items[0] = nil
	if list.Items[0] == nil || copied.GetObjectKind().GroupVersionKind().Kind != "List" {
		t.Error("DeepCopyObject() did not return a copy")
	}
}

func TestPrunePaths(t *testing.T) {
	key := func(keys ...string) (path packed.Path) {
		for _, k := range keys {
			path = append(path, packed.Step{Key: k})
		}
		return path
	}
	for name, path := range map[string]packed.Path{
		"empty": {}, "ends in each": {{Key: "a"}, {Each: true}}, "both": {{Key: "a", Each: true},
			{Key: "b"}}, "kind": key("kind"), "version": key("apiVersion"), "metadata": key("metadata"),
		"name": key("metadata", "name"), "namespace": key("metadata", "namespace"), "uid": key("metadata",
			"uid"), "resourceVersion": key("metadata", "resourceVersion"),
		"the bookmark's annotation": key("metadata", "annotations", metav1.InitialEventsAnnotationKey),
	} {
		if p, err := packed.NewPruner(packed.Prune{Paths: []packed.Path{path}}); err == nil || p != nil {
			t.Errorf("%s: NewPruner() succeeded, want an error", name)
		}
	}
	if p, err := packed.NewPruner(packed.Prune{}); p != nil || err != nil {
		t.Errorf("NewPruner() without paths = %v, %v, want nil, nil", p, err)
	}
	nested := []packed.Path{key("a", "b"), key("a"), key("a", "c"), key("x", "y"),
		key("x", "y", "z"), key("x")}
	for range 2 {
		p, err := packed.NewPruner(packed.Prune{Paths: nested})
		must(t, err)
		compareWithUnstructured(t, packed.NewPacker(p),
			[]byte(`{"apiVersion":"v1","kind":"K","a":{"b":1,"c":2},"b":1,"x":{"y":{"z":1}}}`))
		o, err := packed.NewPacker(p).
			Pack([]byte(`{"apiVersion":"v1","kind":"K","a":{"b":1,"c":2},"b":1,"x":{"y":{"z":1}}}`))
		if text, _ := o.JSON(); err != nil || text != `{"apiVersion":"v1","kind":"K","b":1}` {
			t.Errorf("JSON() = %s (%v), want only the kept fields", text, err)
		}
		slices.Reverse(nested)
	}
	for want, path := range map[string]packed.Path{
		".a.b": key("a", "b"), `.a[*]["b.c/d"]`: {{Key: "a"}, {Each: true}, {Key: "b.c/d"}}, `[""]`: key(""),
	} {
		if got := path.String(); got != want {
			t.Errorf("String of the path = %s, want %s", got, want)
		}
	}
}

// TestOriginalIsNotChanged prunes an object that cannot be packed and belongs to the caller.
func TestOriginalIsNotChanged(t *testing.T) {
	u := &unstructured.Unstructured{Object: content(1)}
	u.Object["spec"] = map[string]any{"a": 1, "b": []any{map[string]any{"a": 1}}}
	want := u.Object["spec"].(map[string]any)["a"]
	o, err := testPackers(t)["paths"].FromUnstructured(u)
	must(t, err)
	if _, there := o.Unstructured().Object["spec"].(map[string]any)["a"]; there {
		t.Error("spec.a was not removed")
	}
	if got := u.Object["spec"].(map[string]any)["a"]; got != want {
		t.Error("spec.a was removed from the caller's object")
	}
}
