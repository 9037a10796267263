package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
)

// typicalObject is an object as an API server sends it.
const typicalObject = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"a":"b"},"creationTimestamp":"2026-01-31T00:00:00Z","generation":1,` +
	`"labels":{"color":"red","size":"x"},"managedFields":[{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{}}},"manager":"m","operation":"Update","time":"2026-01-01T00:00:00Z"}],` +
	`"name":"n","namespace":"default","ownerReferences":[{"apiVersion":"v1","controller":true,"kind":"A","name":"b","uid":"c"}],"resourceVersion":"70","uid":"u"},` +
	`"spec":{"count":-7,"list":[1,"é <",null,true,{}],"none":[],"text":"a\nb\u003c\\\""},"status":{}}`

// TestCanonical verifies that objects read without decoding equal the decoded ones.
func TestCanonical(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		read bool
	}{
		"usual":             {strings.ReplaceAll(typicalObject, " <", " "), true},
		"character of HTML": {typicalObject, true},
		"indented": {strings.NewReplacer(" <", "", `":`, "\" :\n\t", `{`, "{ ", `}`, "\n}", "[",
			"[\r\n").Replace(typicalObject) + "\n", true},
		"keys not in order": {
			`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"n","resourceVersion":"1"}}`,
			true},
		"a key twice":    {`{"apiVersion":"v1","kind":"A","metadata":{"name":"n"},"x":1,"x":2}`, false},
		"a float":        {`{"apiVersion":"v1","kind":"A","metadata":{"name":"n"},"x":1.0}`, true},
		"minus zero":     {`{"apiVersion":"v1","kind":"A","metadata":{"name":"n"},"x":-0}`, true},
		"another escape": {`{"apiVersion":"v1","kind":"A","metadata":{"name":"n"},"x":"\/"}`, true},
		"an escaped key": {`{"apiVersion":"v1","kind":"A","metadata":{"name":"n"},"x\n":1}`, true},
		"no name":        {`{"apiVersion":"v1","kind":"A","metadata":{}}`, false},
		"no version":     {`{"kind":"A","metadata":{"name":"n"}}`, false},
		"odd metadata": {`{"apiVersion":"v1","kind":"A","metadata":{"labels":{"a":1},"name":"n","uid":"u"}}`,
			false},
		"no such day": {
			`{"apiVersion":"v1","kind":"A","metadata":{"creationTimestamp":"2026-02-30T00:00:00Z","name":"n"}}`, false},
		"invalid UTF-8": {
			"{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{\"name\":\"n\"},\"x\":\"\xff\"}", true},
		"version not first":     {`{"a":1,"apiVersion":"v1","kind":"A","metadata":{"name":"n"}}`, true},
		"text after the object": {`{"apiVersion":"v1","kind":"A","metadata":{"name":"n"}} 1`, false},
		"nested very deeply": {`{"apiVersion":"v1","kind":"A","metadata":{"name":"n"},"x":` +
			strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if read := sameAsDecoded(t, []byte(tt.text)); read != tt.read {
				t.Errorf("the object was read without decoding: %v, want %v", read, tt.read)
			}
		})
	}
}

// sameAsDecoded compares an object read without decoding with the decoded one. It returns false if the text
// has to be decoded.
func sameAsDecoded(t *testing.T, text []byte) bool {
	t.Helper()
	c := &manifest.Canonical{}
	end, ok, _ := c.Read(text, 0)
	if !ok || strings.TrimSpace(string(text[end:])) != "" {
		return false
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(text, &u.Object); err != nil {
		t.Fatalf("the canonicalizer accepted invalid JSON: %v in %s", err, text)
	}
	if _, err := validateIdentity(u); err != nil {
		t.Errorf("the canonicalizer accepted an invalid identity: %v in %s", err, text)
	}
	body, err := encodeBody(u.Object)
	if got := c.Body(); err != nil || !bytes.Equal(body, got) {
		t.Errorf("encoding the decoded object: %v\n%s\nthe canonical text is\n%s", err, body, got)
	}
	want := []string{u.GetAPIVersion(), u.GetKind(), u.GetNamespace(), u.GetName(), u.GetResourceVersion()}
	got := []string{c.APIVersion, c.Kind, c.Namespace, c.Name, c.ResourceVersion}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("object (-decoded +read):\n%s", diff)
	}
	return true
}

// TestCanonicalAfterAnother verifies that nothing of the last object is read again.
func TestCanonicalAfterAnother(t *testing.T) {
	for last, kind := range map[string]string{`"ru"`: `true`, `"\\u003c"`: `"<"`, `"A"`: `"A"`} {
		const text = `{"apiVersion":"v1","kind":%s,"metadata":{"name":"n"}}`
		c := &manifest.Canonical{}
		c.Read(fmt.Appendf(nil, text, last), 0)
		var want string
		isText := json.Unmarshal([]byte(kind), &want) == nil
		if _, ok, _ := c.Read(fmt.Appendf(nil, text, kind), 0); ok != isText || c.Kind != want {
			t.Errorf("after %s, %s was read as %q: %v, want %q: %v", last, kind, c.Kind, ok, want, isText)
		}
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add([]byte(typicalObject))
	f.Add([]byte(strings.ReplaceAll(typicalObject, " <", "")))
	f.Add([]byte(`{"apiVersion":"v1","kind":"A","metadata":{"name":"n","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["a"]}}`))
	f.Fuzz(func(t *testing.T, text []byte) { sameAsDecoded(t, text) })
}

// restoreText restores an object without decoding it, if that is possible.
func restoreText(s *Storage, text string) (Outcome, error) {
	c := &manifest.Canonical{}
	if _, ok, _ := c.Read([]byte(text), 0); ok && s.RestoreCanonical(c) {
		return Added, nil
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON([]byte(text)); err != nil {
		return "", err
	}
	return s.Restore(u)
}

// TestRestoreCanonical verifies that all ways of restoring and storing objects serve the same objects.
func TestRestoreCanonical(t *testing.T) {
	var want string
	for _, compress := range []bool{false, true} {
		for _, asText := range []bool{false, true} {
			s := NewStorage(StorageOptions{Compress: compress})
			apply(t, s, testkit.WidgetCRD)
			for i := range 300 {
				text := strings.NewReplacer(`"name":"n"`, fmt.Sprintf(`"name":"n%03d"`, i), `"70"`,
					fmt.Sprintf(`"%d"`, 70+i), " <", "").Replace(typicalObject)
				if i == 7 {
					text = strings.Replace(text, `"text":"`, `"text":"`+strings.Repeat("long ", 20_000), 1)
				}
				if i%10 == 3 { // this object has to be decoded
					text = strings.Replace(text, `"spec":{`, `"spec":{"count":0,`, 1)
				}
				var err error
				if asText {
					_, err = restoreText(s, text)
				} else {
					_, err = s.Restore(testkit.Parse(t, text))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			// Restore the objects again, with one change.
			again := strings.NewReplacer(`"name":"n"`, `"name":"n005"`, " <", "", `-7`, `8`).Replace(typicalObject)
			if outcome, err := restoreText(s, again); err != nil || outcome != Updated {
				t.Errorf("restoreText() of a changed object = %v, %v, want %v", outcome, err, Updated)
			}
			if outcome, err := restoreText(s, again); err != nil || outcome != Unchanged {
				t.Errorf("restoreText() of the same object = %v, %v, want %v", outcome, err, Unchanged)
			}
			h := handlerOf(s)
			body := get(h, widgetsPath).Body
			if want == "" {
				want = body
			}
			if body != want {
				t.Errorf("compressed %v, as text %v: %s", compress, asText, cmp.Diff(want, body))
			}
			if a := get(h, inDefaultPath+"/n100"); !strings.Contains(a.Body, `"n100"`) {
				t.Errorf("the response is %+v, want the object n100", a)
			}
			if keys := get(h, widgetsPath+"?labelSelector=color%3Dred&limit=2").Keys(t); len(keys) != 2 {
				t.Errorf("list by label: got the keys %q, want 2", keys)
			}
		}
	}
	if _, err := restoreText(NewStorage(StorageOptions{}), typicalObject); err == nil {
		t.Error("restoring an object of an unknown type succeeded, want an error")
	}
}

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
		"Apply": func(s *Storage) (Outcome, error) { return s.Apply(testkit.Parse(t, text)) },
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

var widgetsGVR = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func mergePatches(_ schema.GroupVersionKind, _ bool, _ *http.Request, patch []byte) (PatchFunc, error) {
	return func(old []byte) ([]byte, error) { return jsonpatch.MergePatch(old, patch) }, nil
}

// writable returns a client that can write widgets, and the storage and handler that it uses.
func writable(t *testing.T) (dynamic.ResourceInterface, *Storage, http.Handler) {
	t.Helper()
	s := NewStorage(StorageOptions{})
	apply(t, s, testkit.WidgetCRD)
	h := readapi.NewHandler(s.Writer(WriterOptions{ParsePatch: mergePatches}), readapi.HandlerOptions{})
	client, err := dynamic.NewForConfig(readapi.Config(h))
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(widgetsGVR).Namespace("default"), s, h
}

func must(t *testing.T) func(*unstructured.Unstructured, error) *unstructured.Unstructured {
	return func(u *unstructured.Unstructured, err error) *unstructured.Unstructured {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
}

// TestConcurrentWrites verifies that of concurrent updates of one version only one succeeds; concurrent
// patches all succeed.
func TestConcurrentWrites(t *testing.T) {
	ctx := context.Background()
	widgets, s, _ := writable(t)
	apply(t, s, testkit.Widget("default", "a", "red"))
	base := must(t)(widgets.Get(ctx, "a", metav1.GetOptions{}))
	var wg sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		wg.Go(func() {
			u := base.DeepCopy()
			u.SetAnnotations(map[string]string{"by": fmt.Sprint(i)})
			_, results[i] = widgets.Update(ctx, u, metav1.UpdateOptions{})
		})
	}
	wg.Wait()
	won := 0
	for _, err := range results {
		if err == nil {
			won++
		} else if !apierrors.IsConflict(err) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d concurrent updates of one version succeeded, want 1", won)
	}
	for i := range 4 {
		wg.Go(func() {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"p%d":"x"}}}`, i)
			if _, err := widgets.Patch(ctx, "a", types.MergePatchType, []byte(patch),
				metav1.PatchOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if after := must(t)(widgets.Get(ctx, "a", metav1.GetOptions{})); len(after.GetAnnotations()) != 5 {
		t.Errorf("after concurrent patches, annotations = %v, want 5", after.GetAnnotations())
	}
}

// TestCollectionOfAnotherBackend verifies that a request for another backend is an error.
func TestCollectionOfAnotherBackend(t *testing.T) {
	_, s, _ := writable(t)
	_, other, _ := writable(t)
	for _, c := range []readapi.Collection{other.Collection(widgetResource), struct{ readapi.Collection }{}} {
		_, err := s.Writer(WriterOptions{}).Write(&readapi.WriteRequest{Collection: c})
		if err == nil || !strings.Contains(err.Error(), "another backend") {
			t.Errorf("Write() for a %T = %v, want an error about the backend", c, err)
		}
	}
}
