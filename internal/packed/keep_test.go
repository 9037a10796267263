package packed_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
)

func keys(names ...string) (path packed.Path) {
	for _, name := range names {
		path = append(path, packed.Step{Key: name, Each: name == ""})
	}
	return path
}

// keepPaths are paths to an element of a list, to a map, below another path, and two paths that
// expect a map and a list at the same position.
var keepPaths = []packed.Path{
	keys("spec", "containers", "", "image"), keys("spec", "containers", "", "ports", "", "name"),
	keys("spec", "issuerRef"), keys("spec", "issuerRef", "name"), keys("status", "conditions", "", "type"),
	keys("spec", "mixed", "a"), keys("spec", "mixed", "", "b"), keys("metadata", "annotations", "team"),
}

// alwaysKept are the fields that every keep-list has.
var alwaysKept = []packed.Path{
	keys("apiVersion"), keys("kind"), keys("metadata", "name"), keys("metadata", "namespace"),
	keys("metadata", "uid"), keys("metadata", "resourceVersion"), keys("metadata", "generation"),
	keys("metadata", "creationTimestamp"), keys("metadata", "deletionTimestamp"),
	keys("metadata", "deletionGracePeriodSeconds"), keys("metadata", "labels"),
	keys("metadata", "ownerReferences"), keys("metadata", "finalizers"),
	keys("metadata", "annotations", metav1.InitialEventsAnnotationKey),
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
	pruner, err := packed.NewKeepList(keepPaths)
	if err != nil {
		t.Fatal(err)
	}
	return packed.NewPacker(pruner)
}

// checkKeepList fails the test unless packing retains the same values as decoding and project.
func checkKeepList(t *testing.T, packer *packed.Packer, data []byte) {
	t.Helper()
	whole := &unstructured.Unstructured{}
	if whole.UnmarshalJSON(data) != nil {
		return
	}
	want := project(whole.Object, append(alwaysKept, keepPaths...))
	got, err := packer.Pack(data)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := got.Decode()
	if err != nil {
		t.Fatal(err)
	}
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

func TestKeepList(t *testing.T) {
	packer := keepPacker(t)
	for _, document := range append(keepDocuments, string(certificate(1))) {
		checkKeepList(t, packer, []byte(document))
	}
	for _, path := range []packed.Path{nil, keys("spec", ""), {{Key: "a", Each: true}, {Key: "b"}}} {
		if _, err := packed.NewKeepList([]packed.Path{path}); err == nil {
			t.Errorf("NewKeepList(%q) succeeded, want an error", path)
		}
	}
}

func FuzzKeepList(f *testing.F) {
	for _, document := range keepDocuments {
		f.Add([]byte(document))
	}
	packer := keepPacker(f)
	f.Fuzz(func(t *testing.T, data []byte) { checkKeepList(t, packer, data) })
}

func TestRemoves(t *testing.T) {
	managedFields := keys("metadata", "managedFields")
	prune := func(paths ...packed.Path) *packed.Pruner {
		pruner, err := packed.NewPruner(packed.Prune{Paths: paths})
		if err != nil {
			t.Fatal(err)
		}
		return pruner
	}
	keep := func(paths ...packed.Path) *packed.Pruner {
		pruner, err := packed.NewKeepList(paths)
		if err != nil {
			t.Fatal(err)
		}
		return pruner
	}
	for name, tt := range map[string]struct {
		pruner *packed.Pruner
		want   bool
	}{
		"no pruner":              {nil, false},
		"the value":              {prune(managedFields), true},
		"another value":          {prune(keys("metadata", "annotations", "a")), false},
		"a value in each":        {prune(keys("metadata", "managedFields", "", "fieldsV1")), false},
		"metadata only":          {packed.MetadataOnly, false},
		"a kept value elsewhere": {keep(keys("spec", "a")), true},
		"a kept value":           {keep(managedFields), false},
		"a kept value in each":   {keep(keys("metadata", "managedFields", "", "manager")), false},
		"the kept parent":        {keep(keys("metadata")), false},
	} {
		if got := tt.pruner.Removes(managedFields); got != tt.want {
			t.Errorf("%s: Removes is %t, want %t", name, got, tt.want)
		}
	}
}
