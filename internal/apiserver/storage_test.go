package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
)

func TestApply(t *testing.T) {
	s := newWidgets(t, StorageOptions{})
	before := s.ResourceVersion()
	if got := apply(t, s, testkit.Widget("default", "a", "red")); got != Unchanged || s.ResourceVersion() != before {
		t.Errorf("applying the same object = %s, version %s → %s; want no change", got, before,
			s.ResourceVersion())
	}
	if got := apply(t, s, testkit.Widget("default", "a", "blue")); got != Updated || s.ResourceVersion() == before {
		t.Errorf("applying another color = %s, version %s → %s; want an update", got, before,
			s.ResourceVersion())
	}
	if got := apply(t, s, testkit.Widget("default", "new", "blue")); got != Added {
		t.Errorf("applying a new object = %s, want %s", got, Added)
	}
	got := get(handlerOf(s), inDefaultPath+"/a").Decoded(t)
	if color, _, _ := unstructured.NestedString(got.Object, "spec", "color"); color != "blue" {
		t.Errorf("color = %q, want blue", color)
	}
	if got.GetUID() != "" || got.GetGeneration() != 0 || !got.GetCreationTimestamp().Time.IsZero() {
		t.Errorf("the object got server-side metadata: %v", got.Object["metadata"])
	}
	if n := len(s.mu.types[widgetResource].objects); n != 5 {
		t.Errorf("%d widgets, want 5", n)
	}
}

func TestApplyRefuses(t *testing.T) {
	s := newWidgets(t, StorageOptions{})
	tests := map[string]struct{ text, err string }{
		"no kind":       {"{apiVersion: v1, metadata: {name: x}}", "kind is missing"},
		"no apiVersion": {"{kind: Widget, metadata: {name: x}}", "apiVersion is missing"},
		"odd apiVersion": {"{apiVersion: a/b/c, kind: Widget, metadata: {name: x}}",
			"unexpected GroupVersion"},
		"no metadata": {"{apiVersion: example.com/v1, kind: Widget}", "metadata is missing"},
		"no name": {"{apiVersion: example.com/v1, kind: Widget, metadata: {generateName: x-}}",
			"metadata.name"},
		"name with slash": {"{apiVersion: example.com/v1, kind: Widget, metadata: {name: a/b}}",
			"metadata.name"},
		"odd namespace": {"{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: 7}}",
			"metadata.namespace"},
		"odd labels": {"{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, labels: {a: 7}}}",
			"metadata"},
		"unknown kind": {"{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}}",
			"no type has the kind Gadget.example.com"},
		"unserved version": {"{apiVersion: example.com/v9, kind: Widget, metadata: {name: a}}",
			`not served in version "v9" but in ["v1" "v1beta1"]`},
		"misnamed CRD": {strings.Replace(testkit.WidgetCRD, "widgets.example.com", "w.example.com", 1),
			`want plural and group, "widgets.example.com"`},
		"CRD without kind": {strings.Replace(testkit.WidgetCRD, "kind: Widget,", "", 1),
			"spec.names.kind is missing"},
		"CRD with its kind": {strings.ReplaceAll(testkit.WidgetCRD, "widgets", "wodgets"),
			"already has the kind Widget"},
	}
	clusterScoped := parseLoosely(t,
		"{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a, namespace: b}}")
	if _, err := s.Apply(clusterScoped); err != nil || !s.Has(apiServices, "", "a") {
		t.Errorf("a namespace of a cluster-scoped object: error %v, want the object without it", err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			u := parseLoosely(t, tt.text)
			if _, err := s.Apply(u); err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error = %v, want %q", err, tt.err)
			}
		})
	}
	var unknown *UnknownTypeError
	if _, err := s.Apply(parseLoosely(t, `{"apiVersion":"a.b/v1","kind":"X","metadata":{"name":"x"}}`)); !errors.As(err, &unknown) || unknown.GVK.Kind != "X" {
		t.Errorf("error = %v, want an unknown type error", err)
	}
}

func TestRestore(t *testing.T) {
	s := NewStorage(StorageOptions{})
	apply(t, s, testkit.WidgetCRD)
	for version, want := range map[string]string{"900": "900", "70": "70", "007": "", "x": "",
		"0": "", "": ""} {
		name := "v" + version
		data := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q,"resourceVersion":%q}}`,
			name, version)
		if _, err := s.Restore(testkit.Parse(t, data)); err != nil {
			t.Fatal(err)
		}
		got := get(handlerOf(s), inDefaultPath+"/"+name).Decoded(t).GetResourceVersion()
		if got == "" || want != "" && got != want || want == "" && got == version {
			t.Errorf("Restore() of resource version %q stored %q, want %q (empty: another version)", version,
				got, want)
		}
	}
	if version := s.ResourceVersion(); len(version) < 3 || version < "900" {
		t.Errorf("ResourceVersion() = %s, want at least 900", version)
	}
	// Restored objects have no events, so a watch must not continue from an earlier version.
	for _, data := range []string{"",
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"late","resourceVersion":"3"}}`} {
		before := s.ResourceVersion()
		if data == "" {
			before = "899"
		} else if _, err := s.Restore(testkit.Parse(t, data)); err != nil {
			t.Fatal(err)
		}
		got := get(handlerOf(s), widgetsPath+"?watch=1&timeoutSeconds=1&resourceVersion="+before).Body
		if !strings.Contains(got, `"code":410`) {
			t.Errorf("a watch from version %s gets %s, want code 410", before, got)
		}
	}
}

// TestDefinitionLifecycle verifies that served paths, objects and APIServices follow the creation, changes
// and deletion of a CustomResourceDefinition.
func TestDefinitionLifecycle(t *testing.T) {
	s := newWidgets(t, StorageOptions{})
	served := func(path string) int { return get(handlerOf(s), path).Code }
	services := func() string {
		return strings.Join(get(handlerOf(s), "/apis/apiregistration.k8s.io/v1/apiservices?labelSelector="+
			autoManagedLabel).Keys(t), " ")
	}
	const system = "v1.apiextensions.k8s.io v1.apiregistration.k8s.io"
	if got := services(); got != system+" v1.example.com v1beta1.example.com" {
		t.Errorf("APIServices: %s, want both versions", got)
	}
	apply(t, s, strings.Replace(testkit.WidgetCRD, "served: true\n    storage: false",
		"served: false\n    storage: false", 1))
	if served("/apis/example.com/v1beta1/widgets") != 404 || served(widgetsPath) != 200 ||
		len(s.mu.types[widgetResource].objects) != 4 {
		t.Error("after a version is no longer served: want 404 for it, and no other change")
	}
	if got := services(); got != system+" v1.example.com" {
		t.Errorf("APIServices: %s, want v1 only", got)
	}
	apply(t, s, strings.Replace(testkit.WidgetCRD, "Namespaced", "Cluster", 1))
	if n := len(s.mu.types[widgetResource].objects); n != 0 {
		t.Errorf("%d objects remain after a change of scope, want 0", n)
	}
	apply(t, s, testkit.WidgetCRD+"status: {conditions: [{type: Established, status: 'False'}]}\n")
	if served(widgetsPath) != 404 {
		t.Error("a type that is not established is served, want status 404")
	}
	apply(t, s, testkit.WidgetCRD)
	apply(t, s, testkit.Widget("default", "a", "red"))
	s.Delete(definitions, "", "widgets.example.com")
	if served(widgetsPath) != 404 || served("/apis/example.com") != 404 || services() != system {
		t.Errorf("after the definition was deleted: status %d, APIServices %s", served(widgetsPath),
			services())
	}
	apply(t, s, testkit.WidgetCRD)
	if n := len(s.mu.types[widgetResource].objects); n != 0 {
		t.Errorf("%d objects after the definition was recreated, want 0", n)
	}
}

func TestSetType(t *testing.T) {
	s := NewStorage(StorageOptions{})
	gadgets := readapi.Type{Group: "example.com", Versions: []readapi.Version{{Name: "v1"}}}
	if err := s.SetType(gadgets); err == nil {
		t.Error("SetType() without names succeeded, want an error")
	}
	gadgets.Names.Plural, gadgets.Names.Kind = "gadgets", "Gadget"
	if err := s.SetType(gadgets); err != nil {
		t.Fatal(err)
	}
	apply(t, s, "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}}")
	gadgets.Names.ShortNames = []string{"gd"}
	if err := s.SetType(gadgets); err != nil || len(s.mu.types[gadgets.GroupResource()].objects) != 1 {
		t.Errorf("SetType() of a changed type = %v, or removed the object", err)
	}
	var names []string
	types, _ := s.ServedTypes()
	for _, known := range types {
		names = append(names, known.GroupResource().String()+" "+known.Names.ListKind)
	}
	want := []string{"customresourcedefinitions.apiextensions.k8s.io CustomResourceDefinitionList",
		"apiservices.apiregistration.k8s.io APIServiceList", "gadgets.example.com GadgetList"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	if !s.RemoveType(gadgets.GroupResource()) || s.RemoveType(gadgets.GroupResource()) {
		t.Error("RemoveType(), twice: want true, then false")
	}
}

// TestSnapshotAt compares all earlier states with snapshots taken at the time.
func TestSnapshotAt(t *testing.T) {
	s := newWidgets(t, StorageOptions{})
	c := s.mu.types[widgetResource]
	type state struct {
		version uint64
		objects []*object
	}
	states := []state{{s.mu.version, c.snapshot()}}
	step := func() { states = append(states, state{s.mu.version, c.snapshot()}) }
	for i := range 20 {
		switch i % 4 {
		case 0:
			apply(t, s, testkit.Widget("default", fmt.Sprint("n", i), "red"))
		case 1:
			apply(t, s, testkit.Widget("default", fmt.Sprint("n", i-1), "green"))
		case 2:
			s.Delete(widgetResource, "default", fmt.Sprint("n", i-2))
		case 3:
			apply(t, s, testkit.Widget("other", fmt.Sprint("n", i-3), "red"))
		}
		step()
	}
	for _, want := range states {
		snapshot := c.snapshotAt(want.version)
		if snapshot == nil {
			t.Fatalf("snapshotAt(%d) = nil, want a snapshot", want.version)
		}
		got := slices.Collect(snapshot.Range("", ""))
		if n := snapshot.Count("", ""); n != len(got) {
			t.Errorf("at version %d: Count() = %d, want %d", want.version, n, len(got))
		}
		for o := range snapshot.Range("default/", "default0") {
			if n := snapshot.Count(o.Key(),
				"default0"); n != len(slices.Collect(snapshot.Range(o.Key(), "default0"))) {
				t.Errorf("at version %d: Count() from %s = %d, which differs from Range()", want.version,
					o.Key(), n)
			}
		}
		if len(got) != len(want.objects) {
			t.Fatalf("at version %d: %d objects, want %d", want.version, len(got), len(want.objects))
		}
		for i := range got {
			if got[i] != readapi.Object(want.objects[i]) {
				t.Errorf("at version %d: got the object %s, want %s", want.version, got[i].Key(),
					want.objects[i].key)
			}
		}
	}
}

// TestConcurrentUse uses a storage from several goroutines, to find data races with -race.
func TestConcurrentUse(t *testing.T) {
	s := newWidgets(t, StorageOptions{History: 8})
	h := handlerOf(s)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 50 {
				name := fmt.Sprint("w", worker, "-", i%3)
				if _, err := s.Apply(parseLoosely(t,
					testkit.Widget("default", name, fmt.Sprint("c", i)))); err != nil {
					t.Error(err)
				}
				s.Delete(widgetResource, "default", fmt.Sprint("w", worker, "-", (i+1)%3))
				get(h, widgetsPath+"?limit=2")
				get(h, "/apis", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
			}
		})
		wg.Go(func() {
			for range 10 {
				if _, err := s.Apply(parseLoosely(t, strings.Replace(testkit.WidgetCRD, "[all]",
					fmt.Sprintf("[all, c%d]", worker), 1))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// parseLoosely parses an object without the checks of unstructured.Unstructured.
func parseLoosely(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: yamlMap(t, text)}
}

// TestWatchEndsWithDeletedType checks that the last bookmark of a watch has the version at which the type was
// removed, because a later type of the same name can have objects since.
func TestWatchEndsWithDeletedType(t *testing.T) {
	s := NewStorage(StorageOptions{})
	gadget := readapi.Type{Group: "example.com", Names: crd.Names{Plural: "gadgets", Kind: "Gadget"},
		Versions: []readapi.Version{{Name: "v1"}}}
	if err := s.SetType(gadget); err != nil {
		t.Fatal(err)
	}
	deleted := s.Collection(gadget.GroupResource())
	s.RemoveType(gadget.GroupResource())
	went, err := strconv.ParseUint(s.ResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetType(gadget); err != nil {
		t.Fatal(err)
	}
	apply(t, s, `{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"}}`)
	if got := deleted.Since(0).ResourceVersion; got > went {
		t.Errorf("the watch ends at version %d, after the type was removed at %d", got, went)
	}
}

// FuzzApply applies any JSON. Accepted objects must be readable in every representation.
func FuzzApply(f *testing.F) {
	f.Add([]byte(
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x","labels":{"a":"b"}},"spec":{"color":{"a":[1]}}}`))
	f.Add([]byte(
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x","creationTimestamp":7,"finalizers":{}}}`))
	f.Add([]byte(
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.b.c"},"spec":{"group":"b.c","scope":"Cluster","names":{"plural":"a","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"schema":7}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		object := &unstructured.Unstructured{}
		if utiljson.Unmarshal(data, &object.Object) != nil {
			return // most inputs end here
		}
		s := newWidgets(t, StorageOptions{})
		if _, err := s.Apply(object); err != nil {
			return
		}
		if outcome, err := s.Apply(object); err != nil || outcome != Unchanged {
			t.Errorf("applying the object again: %s, %v, want %s", outcome, err, Unchanged)
		}
		h := handlerOf(s)
		for _, accept := range []string{"application/json", asTable, asPartialList} {
			for _, path := range []string{widgetsPath,
				"/apis/apiextensions.k8s.io/v1/customresourcedefinitions"} {
				if got := get(h, path, "Accept", accept); got.Code != 200 ||
					!json.Valid([]byte(got.Body)) {
					t.Errorf("%s as %s: %d %s", path, accept, got.Code, got.Body)
				}
			}
		}
		get(h, "/openapi/v3")
	})
}
