package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/testkit"
)

// fullDefinition has each field that a reader of definitions uses.
const fullDefinition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"gears.example.com","uid":"u","resourceVersion":"7","generation":2,"creationTimestamp":"2026-01-02T03:04:05Z",
"deletionTimestamp":"2026-01-02T03:04:05Z","labels":{"a":"b"},"annotations":{"a":"b"},"finalizers":["a/b"],
"ownerReferences":[{"apiVersion":"v1","kind":"A","name":"a","uid":"u","controller":true}],"managedFields":[{"manager":"m"}]},
"spec":{"group":"example.com","scope":"Namespaced","preserveUnknownFields":false,
"names":{"plural":"gears","singular":"gear","kind":"Gear","listKind":"GearList","shortNames":["g"],"categories":["all"]},
"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://example.com"}}},
"versions":[{"name":"v1","served":true,"storage":true,"deprecated":true,"deprecationWarning":"old",
"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
"schema":{"openAPIV3Schema":{"type":"object","description":"d","required":["spec"],"properties":{"spec":{"type":"object",
"properties":{"list":{"type":"array","maxItems":3,"items":{"type":"string","enum":["a"],"default":"a","nullable":true,"pattern":"a"},
"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"]},"map":{"type":"object","additionalProperties":{"type":"integer","format":"int32"}},
"any":{"x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-int-or-string":true,"x-kubernetes-embedded-resource":true}}}}}},
"additionalPrinterColumns":[{"name":"List","type":"string","format":"f","description":"d","priority":1,"jsonPath":".spec.list"}],
"selectableFields":[{"jsonPath":".spec.list"}]},{"name":"v2","served":true,"storage":false}]},
"status":{"acceptedNames":{"plural":"gears","singular":"gear","kind":"Gear","listKind":"GearList","shortNames":["g"],"categories":["all"]},
"storedVersions":["v1"],"conditions":[{"type":"NamesAccepted","status":"True"},{"type":"Established","status":"True","reason":"r"}]}}`

// requiredFields are the fields without which a definition is invalid.
var requiredFields = []string{".apiVersion", ".kind", ".metadata", ".metadata.name", ".spec", ".spec.group", ".spec.scope",
	".spec.names", ".spec.names.plural", ".spec.names.kind", ".spec.versions", ".spec.versions.name"}

// setNulls sets random optional fields to null, and returns their paths.
func setNulls(random *rand.Rand, value any, path string) (nulls []string) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			at := path + "." + key
			if random.IntN(12) == 0 && !slices.Contains(requiredFields, at) {
				value[key] = nil
				nulls = append(nulls, at)
				continue
			}
			nulls = append(nulls, setNulls(random, value[key], at)...)
		}
	case []any:
		for _, element := range value {
			nulls = append(nulls, setNulls(random, element, path)...)
		}
	}
	return nulls
}

// TestNullsInDefinitions reads definitions in which random optional fields are null, as if they were not set.
// Every reader accepts them and finds the same type.
func TestNullsInDefinitions(t *testing.T) {
	for seed := range uint64(400) {
		content := map[string]any{}
		if err := json.Unmarshal([]byte(fullDefinition), &content); err != nil {
			t.Fatal(err)
		}
		nulls := setNulls(rand.New(rand.NewPCG(seed, 1)), content, "")
		data, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		want, err := crd.Decode(data)
		if err != nil {
			t.Fatalf("Decode with nulls at %q: %v", nulls, err)
		}
		read, err := crd.Read(bytes.NewReader(data), "crd.yaml")
		if err != nil || !cmp.Equal(read, []*crd.Definition{want}) {
			t.Errorf("nulls at %q: Read returned %v (%v), want %v", nulls, read, err, want)
		}
		summary, err := crd.Summary(content)
		if err != nil || fmt.Sprint(summary.Names, summary.ServedVersions(), summary.Established) !=
			fmt.Sprint(want.Names, want.ServedVersions(), want.Established) {
			t.Errorf("nulls at %q: Summary returned %v (%v), want %v", nulls, summary, err, want)
		}
		hasConditions := !slices.Contains(nulls, ".status") && !slices.Contains(nulls, ".status.conditions")
		s := NewStorage(StorageOptions{})
		if _, err = s.Restore(&unstructured.Unstructured{Object: content}); err != nil {
			t.Errorf("nulls at %q: Restore: %v", nulls, err)
		}
		c := s.Collection(want.GroupResource())
		switch served := len(want.ServedVersions()) > 0 && (want.Established || !hasConditions); {
		case served != (c != nil):
			t.Errorf("nulls at %q: the type is served: %t, want %t", nulls, c != nil, served)
		case served && len(c.Type().Versions) != len(want.ServedVersions()):
			t.Errorf("nulls at %q: versions %v, want %v", nulls, c.Type().Versions, want.ServedVersions())
		}
	}
}

// TestNullLabels verifies that a null label is empty, as on a kube-apiserver. Templates write such labels.
func TestNullLabels(t *testing.T) {
	const text = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"n","namespace":"default","labels":{"a":"1","b":null},` +
		`"annotations":{"x":null,"y":"1"},"finalizers":null,"ownerReferences":null,"creationTimestamp":null},"spec":{"c":null}}`
	for name, put := range map[string]func(*Storage) (Outcome, error){
		"Apply":       func(s *Storage) (Outcome, error) { return s.Apply(testkit.Parse(t, text)) },
		"RestoreJSON": func(s *Storage) (Outcome, error) { return s.RestoreJSON([]byte(text)) },
	} {
		s := newWidgets(t, StorageOptions{})
		if _, err := put(s); err != nil {
			t.Fatal(err)
		}
		list := get(handlerOf(s), inDefaultPath+"?labelSelector=a=1,b=").Decoded(t)
		items, _ := list.Object["items"].([]any)
		if len(items) != 1 {
			t.Fatalf("%s: %d objects have the labels, want 1", name, len(items))
		}
		u := unstructured.Unstructured{Object: items[0].(map[string]any)}
		if u.GetLabels()["a"] != "1" || u.GetAnnotations()["y"] != "1" || !strings.Contains(fmt.Sprint(u.Object["spec"]), "c") {
			t.Errorf("%s: the object is %v", name, u.Object)
		}
	}
}
