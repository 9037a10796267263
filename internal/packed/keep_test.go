package packed_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/packed"
)

func newPath(names ...string) (path packed.Path) {
	for _, name := range names {
		path = append(path, packed.Step{Key: name, Each: name == ""})
	}
	return path
}

// keepPaths are paths to an element of a list, to a map, below another path, and two paths that
// expect a map and a list at the same position.
var keepPaths = []packed.Path{
	newPath("spec", "containers", "", "image"), newPath("spec", "containers", "", "ports", "", "name"),
	newPath("spec", "issuerRef"), newPath("spec", "issuerRef", "name"), newPath("status", "conditions", "", "type"),
	newPath("spec", "mixed", "a"), newPath("spec", "mixed", "", "b"), newPath("metadata", "annotations", "team"),
}

// alwaysKept are the fields that every keep-list has.
var alwaysKept = []packed.Path{
	newPath("apiVersion"), newPath("kind"), newPath("metadata", "name"), newPath("metadata", "namespace"),
	newPath("metadata", "uid"), newPath("metadata", "resourceVersion"), newPath("metadata", "generation"),
	newPath("metadata", "creationTimestamp"), newPath("metadata", "deletionTimestamp"),
	newPath("metadata", "deletionGracePeriodSeconds"), newPath("metadata", "labels"),
	newPath("metadata", "ownerReferences"), newPath("metadata", "finalizers"),
	newPath("metadata", "annotations", metav1.InitialEventsAnnotationKey),
}

// project returns the values at the paths. It is the reference for NewKeepList.
func project(value any, paths []packed.Path) any {
	below := map[packed.Step][]packed.Path{}
	for _, path := range paths {
		if len(path) == 0 {
			return value
		}
		below[path[0]] = append(below[path[0]], path[1:])
	}
	each := below[packed.Step{Each: true}]
	switch value := value.(type) {
	case map[string]any:
		if each != nil {
			return value
		}
		kept := map[string]any{}
		for key, v := range value {
			if paths := below[packed.Step{Key: key}]; paths != nil {
				kept[key] = project(v, paths)
			}
		}
		return kept
	case []any:
		if each == nil {
			return value
		}
		kept := make([]any, len(value))
		for i, v := range value {
			kept[i] = project(v, each)
		}
		return kept
	}
	return value
}

func keepPacker(t testing.TB) *packed.Packer {
	t.Helper()
	pruner, err := packed.NewKeepList(nil, nil, keepPaths)
	must(t, err)
	return packed.NewPacker(pruner)
}

// compareKeepList fails the test unless packing retains the same values as decoding and project.
func compareKeepList(t *testing.T, packer *packed.Packer, data []byte) {
	t.Helper()
	whole := &unstructured.Unstructured{}
	if whole.UnmarshalJSON(data) != nil {
		return
	}
	want := project(whole.Object, append(alwaysKept, keepPaths...))
	got, err := packer.Pack(data)
	must(t, err)
	decoded, err := got.Decode()
	must(t, err)
	if !reflect.DeepEqual(want, any(decoded.Object)) {
		t.Fatalf("%.300q (-want +got):\n%s", data, cmp.Diff(want, any(decoded.Object)))
	}
}

var keepDocuments = []string{
	`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[{"name":"a","image":"x","ports":[{"name":"p","port":1},{}]},{"env":[1]},7,[{"image":1}],{}],"other":1},"status":{"phase":"Running"}}`,
	`{"a":1,"spec":{"issuerRef":{"name":"x","kind":"y"},"containers":{"image":1,"a":2}},"kind":"K","apiVersion":"g/v1","metadata":{"managedFields":[{}],"annotations":{"team":"a","b":"c"},"labels":{"x":"y"},"name":"n","uid":"u"},"z":{"y":2}}`,
	`{"kind":"K","apiVersion":"g/v1","metadata":{"annotations":{"b":"c"}},"spec":{"mixed":{"a":1,"c":2}},"status":{"conditions":[{"message":"m","type":"Ready"}]}}`,
	`{"kind":"K","apiVersion":"g/v1","spec":{"mixed":[{"a":1,"b":2,"c":3}]},"status":{"conditions":null}}`,
	`{"kind":"K","apiVersion":"g/v1","spec":"text","status":{}}`,
}

func TestInvalidKeepLists(t *testing.T) {
	for _, path := range []packed.Path{nil, newPath("spec", ""), {{Key: "a", Each: true}, {Key: "b"}}} {
		if _, err := packed.NewKeepList(nil, nil, []packed.Path{path}); err == nil {
			t.Errorf("NewKeepList() of the path %q succeeded, want an error", path)
		}
	}
}

// wholeConditions are conditions with the fields that they read, or with fields that contain these: below
// lists and maps, complete values, unions and labels.
var wholeConditions = map[string][]packed.Path{
	`@.status.phase == "Running"`:               {newPath("status", "phase")},
	`!(@.spec.paused)`:                          {newPath("spec", "paused")},
	`@.spec.containers[?(@.image=="x")]`:        {newPath("spec", "containers", "", "image")},
	`@.spec.a[*].ports[?(@.name!="p")]`:         {newPath("spec", "a", "", "ports", "", "name")},
	`@.spec.mixed[0].b || @.spec.mixed.a == 1`:  {newPath("spec", "mixed", "", "b"), newPath("spec", "mixed", "a")},
	`@.spec.issuerRef == @.spec.other`:          {newPath("spec", "issuerRef"), newPath("spec", "other")},
	`@.status.a[?(@.b=="c")] && !(@.spec.x..y)`: {newPath("status", "a", "", "b"), newPath("spec", "x")},
	`@.metadata.labels.x == "y"`:                nil,
	`@.spec.containers[-1:]['env','image']`:     {newPath("spec", "containers")},
	`@.spec.any.* && @.spec.mixed[*][0]`:        {newPath("spec", "any"), newPath("spec", "mixed")},
	`@.spec.finalizers[?(@=="a")]`:              {newPath("spec", "finalizers")},
	`!(@.spec.containers[?(@.env || @[0].port)])`: {newPath("spec", "containers", "", "env"),
		newPath("spec", "containers", "", "", "port")},
}

// wholeCase is a keep-list that keeps the objects that a condition selects whole, and paths of other objects.
type wholeCase struct {
	condition *packed.Condition
	packer    *packed.Packer
	paths     []packed.Path
}

// wholeCases has each condition with and without a label selector.
func wholeCases(t testing.TB) (cases []wholeCase) {
	t.Helper()
	managedFields, err := packed.NewPruner(packed.Prune{ManagedFields: true})
	must(t, err)
	for text, read := range wholeConditions {
		filter, err := jsonpath.CompileFilter(text)
		must(t, err)
		for _, selector := range []labels.Selector{nil, labels.SelectorFromSet(labels.Set{"x": "y"})} {
			condition := &packed.Condition{Labels: selector, Filter: filter}
			pruner, err := packed.NewKeepList(condition, managedFields, keepPaths)
			if err != nil {
				t.Fatalf("NewKeepList(%s): %v", text, err)
			}
			cases = append(cases, wholeCase{condition, packed.NewPacker(pruner),
				slices.Concat(alwaysKept, keepPaths, read)})
		}
	}
	return cases
}

// check fails the test unless packing retains the same values as decoding, evaluating and projecting, and the
// condition selects the same objects afterwards, in every form.
func (c wholeCase) check(t *testing.T, data []byte) {
	t.Helper()
	object := &unstructured.Unstructured{}
	if object.UnmarshalJSON(data) != nil {
		return
	}
	selected := c.condition.Filter.Match(object.Object) &&
		(c.condition.Labels == nil || c.condition.Labels.Matches(labels.Set(object.GetLabels())))
	got, err := c.packer.Pack(data)
	must(t, err)
	decoded, err := got.Decode()
	must(t, err)
	again, err := c.packer.FromUnstructured(decoded)
	must(t, err)
	applied := c.packer.Pruner().Pruned(object)
	var want any = object.Object
	if metadata, ok := object.Object["metadata"].(map[string]any); ok {
		delete(metadata, "managedFields")
	}
	if !selected {
		want = project(want, c.paths)
	}
	for form, got := range map[string]any{"packed": decoded.Object, "decoded": applied.Object,
		"packed twice": again.Unstructured().Object} {
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("%s selects %.300q: %v; %s (-want +got):\n%s", c.condition.Filter, data, selected, form,
				cmp.Diff(want, got))
		}
	}
	for _, form := range []any{got, got.MetadataReader(), decoded, again} {
		if c.packer.Pruner().Reduces(form) == selected {
			t.Fatalf("%s selects %.300q: %v, but not as a stored %T", c.condition.Filter, data, selected,
				form)
		}
	}
}

func wholeDocuments() []string {
	return append(keepDocuments, string(certificate(1)),
		`{"kind":"K","apiVersion":"g/v1","metadata":{"labels":{"x":"y"},"managedFields":[{}]},"spec":{"paused":false,"a":1}}`,
		`{"kind":"K","apiVersion":"g/v1","metadata":{"labels":{"x":"\u0079"}},"spec":{"paused":true,"paused":null}}`,
		`{"kind":"K","apiVersion":"g/v1","spec":{"containers":{"a":{"image":"x","b":1}},"any":{"b":2}},"metadata":{}}`,
		`{"kind":"K","apiVersion":"g/v1","spec":{"containers":[{},[{"image":2}],{"image":"x","env":3}],"finalizers":["a"]}}`,
		`{"kind":"K","apiVersion":"g/v1","spec":{"issuerRef":{"name":1},"other":{"name":1},"x":[{"y":1}]},"status":{"phase":"Running"}}`)
}

func TestInvalidConditions(t *testing.T) {
	for _, text := range []string{`@..a`, `@['a','b']`, `@.*.a`, `@[0]`} {
		filter, err := jsonpath.CompileFilter(text)
		must(t, err)
		if _, err := packed.NewKeepList(&packed.Condition{Filter: filter}, nil, nil); err == nil {
			t.Errorf("NewKeepList() of the condition %s succeeded, want an error", text)
		}
	}
}

// TestKeepWholeReuses verifies that a relist returns the cached object if nothing has changed, reduced or
// whole.
func TestKeepWholeReuses(t *testing.T) {
	filter, err := jsonpath.CompileFilter(`@.spec.mine`)
	must(t, err)
	pruner, err := packed.NewKeepList(&packed.Condition{Filter: filter}, nil, nil)
	must(t, err)
	packer, cached := packed.NewPacker(pruner), (*packed.Object)(nil)
	packer.SetLookup(func(string) *packed.Object { return cached })
	for _, spec := range []string{`{"mine":1,"a":2}`, `{"a":2}`} {
		data := []byte(`{"kind":"K","apiVersion":"g/v1","metadata":{"name":"n","resourceVersion":"1"},"spec":` +
			spec + `}`)
		cached = nil
		if cached = packer.TryPack(data); packer.TryPack(data) != cached {
			t.Errorf("the second TryPack of %s returned a new object, want the cached one", spec)
		}
	}
}

// FuzzKeepWhole verifies that objects that the condition selects keep all fields except the exempt ones.
func FuzzKeepWhole(f *testing.F) {
	for _, document := range wholeDocuments() {
		f.Add([]byte(document))
	}
	cases := wholeCases(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range cases {
			c.check(t, data)
		}
	})
}

func FuzzKeepList(f *testing.F) {
	for _, document := range append(keepDocuments, string(certificate(1))) {
		f.Add([]byte(document))
	}
	packer := keepPacker(f)
	f.Fuzz(func(t *testing.T, data []byte) { compareKeepList(t, packer, data) })
}

func TestRemoves(t *testing.T) {
	managedFields := newPath("metadata", "managedFields")
	prune := func(paths ...packed.Path) *packed.Pruner {
		pruner, err := packed.NewPruner(packed.Prune{Paths: paths})
		must(t, err)
		return pruner
	}
	list := func(whole *packed.Condition, exempt *packed.Pruner, paths ...packed.Path) *packed.Pruner {
		pruner, err := packed.NewKeepList(whole, exempt, paths)
		must(t, err)
		return pruner
	}
	keep := func(paths ...packed.Path) *packed.Pruner { return list(nil, nil, paths...) }
	some := &packed.Condition{Labels: labels.Everything()}
	for name, tt := range map[string]struct {
		pruner *packed.Pruner
		want   bool
	}{
		"no pruner":              {nil, false},
		"the value":              {prune(managedFields), true},
		"another value":          {prune(newPath("metadata", "annotations", "a")), false},
		"a value in each":        {prune(newPath("metadata", "managedFields", "", "fieldsV1")), false},
		"metadata only":          {packed.MetadataOnly, false},
		"a kept value elsewhere": {keep(newPath("spec", "a")), true},
		"a kept value":           {keep(managedFields), false},
		"a kept value in each":   {keep(newPath("metadata", "managedFields", "", "manager")), false},
		"the kept parent":        {keep(newPath("metadata")), false},
		"whole objects have it":  {list(some, nil, newPath("spec", "a")), false},
		"whole objects lack it":  {list(some, prune(managedFields), newPath("spec", "a")), true},
	} {
		if got := tt.pruner.Removes(managedFields); got != tt.want {
			t.Errorf("%s: Removes is %t, want %t", name, got, tt.want)
		}
	}
}
