package readapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/test/integration/harness"
	"github.com/crdcache/crdcache/test/testcluster"
)

const (
	seeds = 8
	steps = 150
)

// TestRandomWrites makes the same random writes on both servers and compares all answers and events.
func TestRandomWrites(t *testing.T) {
	harness.Require(t, harness.Since("1.37")) // testcluster behaves like 1.37
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed),
			func(t *testing.T) { testRandomWrites(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func testRandomWrites(t *testing.T, r *rand.Rand) {
	group, namespace := harness.Group(t), harness.Namespace(t)
	kinds := newKinds(group, namespace)
	definitions := []*unstructured.Unstructured{
		newDefinition(group, "Gizmo", "Namespaced", true), newDefinition(group, "Gadget", "Cluster", false),
	}
	harness.InstallCRDs(t, definitions...)
	cluster, err := testcluster.New(t.Context(), testcluster.Options{})
	must(t, err)
	home := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": namespace}}}
	must(t, cluster.Load(t.Context(), definitions[0], definitions[1], home))
	real, ours := newTestedServer(t, harness.Config(t)), newTestedServer(t, cluster.Config())
	watches := map[string][2]*events{}
	for _, k := range kinds {
		for _, selector := range k.watchSelectors() {
			watches[k.kind+" "+selector] = [2]*events{real.startWatch(t, k, selector),
				ours.startWatch(t, k, selector)}
		}
	}
	var before []string
	for i := range steps {
		k := pickRandom(r, kinds...)
		s := newStep(r, k)
		want, err := real.send(t.Context(), s.newRequest(real))
		must(t, err)
		got, err := ours.send(t.Context(), s.newRequest(ours))
		must(t, err)
		before = append(before, fmt.Sprint(k.kind, ": ", s.name, ": ", want.Code))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("step %d (-real +ours):\n%s\nafter\n%s", i, diff,
				strings.Join(before[max(0, i-8):], "\n"))
		}
	}
	for _, k := range kinds {
		for _, s := range []*testedServer{real, ours} {
			s.createLast(t, k)
		}
	}
	for name, pair := range watches {
		if diff := cmp.Diff(pair[0].readAll(t), pair[1].readAll(t)); diff != "" {
			t.Errorf("events of %s (-real +ours):\n%s", name, diff)
		}
	}
}

// watchSelectors returns the selectors of the watches of a type. All select the object of createLast.
func (k kind) watchSelectors() []string {
	selectors := []string{"", "labelSelector=l%3Dx", "fieldSelector=metadata.name!%3Db"}
	if !k.builtIn {
		selectors = append(selectors, "fieldSelector=spec.n!%3D2")
	}
	return selectors
}

func newKinds(group, namespace string) []kind {
	return []kind{
		{
			apiVersion: group + "/v1", kind: "Gizmo", collection: "/apis/" + group + "/v1/namespaces/" +
				namespace + "/gizmos", namespace: namespace, hasStatus: true,
			contents: customContents,
		},
		{apiVersion: group + "/v1", kind: "Gadget", collection: "/apis/" + group + "/v1/gadgets",
			contents: customContents},
		{
			apiVersion: "v1", kind: "ConfigMap", collection: "/api/v1/namespaces/" + namespace +
				"/configmaps", namespace: namespace, builtIn: true,
			contents: []map[string]any{{}, {"data": map[string]any{"a": "b"}},
				{"data": map[string]any{"a": "c", "d": "e"}}},
		},
		{
			apiVersion: "coordination.k8s.io/v1", kind: "Lease",
			collection: "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases",
			namespace:  namespace, builtIn: true,
			contents: []map[string]any{{"spec": map[string]any{"holderIdentity": "x"}},
				{"spec": map[string]any{"holderIdentity": "y", "leaseDurationSeconds": 9}}},
		},
	}
}

// createLast creates the object that ends the events of a type.
func (s *testedServer) createLast(t *testing.T, k kind) {
	t.Helper()
	last := map[string]any{"apiVersion": k.apiVersion, "kind": k.kind,
		"metadata": map[string]any{"name": "last", "labels": map[string]any{"l": "x"}},
		"spec":     map[string]any{"leaseDurationSeconds": 1}}
	if k.kind == "ConfigMap" {
		delete(last, "spec")
	}
	a, err := s.send(t.Context(), request{method: http.MethodPost, path: k.collection,
		media: mediaJSON, body: last})
	if err != nil || a.Code != http.StatusCreated {
		t.Fatalf("create the last object: %v, %v", a, err)
	}
}

// customContents are fields of custom resources: known, unknown, null and defaulted ones.
var customContents = []map[string]any{
	{}, {"spec": map[string]any{"n": 1}}, {"spec": map[string]any{"n": 2, "unknown": "x"},
		"status": map[string]any{"phase": "a"}},
	{"spec": map[string]any{"n": nil, "s": nil, "list": []any{map[string]any{"a": "x", "b": "y"},
		map[string]any{}}}},
	{"spec": map[string]any{"nested": map[string]any{"k": map[string]any{"a": "x"}, "l": map[string]any{}},
		"maybe": nil}}, {"extra": map[string]any{"x": 1}},
	{"spec": nil}, {"spec": map[string]any{"open": map[string]any{"x": map[string]any{"y": 1},
		"known": map[string]any{"z": 1}}}},
}

// newDefinition returns a definition with many features of schemas.
func newDefinition(group, kind, scope string, status bool) *unstructured.Unstructured {
	text := func(d any) map[string]any {
		m := map[string]any{"type": "string"}
		if d != nil {
			m["default"] = d
		}
		return m
	}
	part := map[string]any{"type": "object", "properties": map[string]any{"a": text("aa"), "c": text(nil)}}
	spec := map[string]any{"type": "object", "properties": map[string]any{
		"n": map[string]any{"type": "integer",
			"default": int64(4)}, "s": text(nil), "maybe": map[string]any{"type": "string", "nullable": true},
		"list": map[string]any{"type": "array", "items": part}, "nested": map[string]any{"type": "object",
			"additionalProperties": part},
		"open": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			"properties": map[string]any{"known": part}},
		"leaseDurationSeconds": map[string]any{"type": "integer"},
	}}
	version := map[string]any{
		"name": "v1", "served": true, "storage": true,
		"selectableFields": []any{map[string]any{"jsonPath": ".spec.n"}},
		"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
			"properties": map[string]any{
				"spec": spec, "status": map[string]any{"type": "object",
					"properties": map[string]any{"phase": text(nil), "n": map[string]any{"type": "integer"}}},
			}}},
	}
	if status {
		version["subresources"] = map[string]any{"status": map[string]any{}}
	}
	d := harness.NewCRD(group, kind)
	_ = unstructured.SetNestedSlice(d.Object, []any{version}, "spec", "versions") // it is a definition
	_ = unstructured.SetNestedField(d.Object, scope, "spec", "scope")
	return d
}

// events are the lines of a watch.
type events struct {
	server *testedServer
	lines  *bufio.Reader
}

// startWatch starts a watch with a selector at the current version.
func (s *testedServer) startWatch(t *testing.T, k kind, selector string) *events {
	t.Helper()
	a, err := s.listVersion(t.Context(), k)
	must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+k.collection+
		"?watch=true&resourceVersion="+a+"&"+selector, nil)
	must(t, err)
	response, err := s.client.Do(r)
	must(t, err)
	t.Cleanup(func() { response.Body.Close() })
	return &events{s, bufio.NewReader(response.Body)}
}

// listVersion returns the resource version of a list.
func (s *testedServer) listVersion(ctx context.Context, k kind) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base+k.collection, nil)
	if err != nil {
		return "", err
	}
	response, err := s.client.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var list metav1.PartialObjectMetadataList
	err = json.NewDecoder(response.Body).Decode(&list)
	return list.ResourceVersion, err
}

// readAll returns the events up to the event of the object "last".
func (e *events) readAll(t *testing.T) []any {
	t.Helper()
	var all []any
	last := map[string]map[string]any{} // states by UID
	for {
		line, err := e.lines.ReadBytes('\n')
		if err != nil {
			t.Fatalf("%v after %v", err, all)
		}
		var event map[string]any
		must(t, json.Unmarshal(line, &event))
		object := event["object"].(map[string]any)
		metadata, _ := object["metadata"].(map[string]any)
		uid := fmt.Sprint(metadata["uid"])
		if event["type"] == "MODIFIED" && last[uid] != nil &&
			e.server.differsOnlyInManagedFields(last[uid], object) {
			continue
		}
		last[uid] = object
		all = append(all, e.server.mask(event))
		if name, _, _ := unstructured.NestedString(event, "object", "metadata", "name"); name == "last" {
			return all
		}
	}
}
