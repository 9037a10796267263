package main

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestIdentityDependsOnSeedAndIndexAlone(t *testing.T) {
	make := func(seed uint64, i int) map[string]any {
		id := newIdentity(seed, i, 4)
		return buildObject(id, certificateContent(id, sizeSmall)).Object
	}
	if diff := cmp.Diff(make(1, 7), make(1, 7)); diff != "" {
		t.Errorf("two objects of the same seed and index differ:\n%s", diff)
	}
	seen := map[string]bool{}
	uid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	for seed := range uint64(3) {
		for i := range 1000 {
			id := newIdentity(seed, i, 4)
			if !uid.MatchString(id.uid) {
				t.Fatalf("%s is not a version 4 UUID", id.uid)
			}
			seen[id.uid], seen[id.name] = true, true
		}
	}
	if len(seen) != 6000 {
		t.Errorf("%d different names and uids, want 6000", len(seen))
	}
}

func TestCertificatesVary(t *testing.T) {
	shapes, issuers := map[string]int{}, map[any]int{}
	for i := range 1000 {
		id := newIdentity(1, i, 4)
		c := certificateContent(id, sizeSmall)
		shapes[c.shape]++
		issuers[c.body["spec"].(map[string]any)["issuerRef"].(map[string]any)["name"]]++
		if name := c.body["spec"].(map[string]any)["commonName"].(string); len(name) > 64 {
			t.Errorf("common name %q is longer than X.509 allows", name)
		}
	}
	if shapes["ready"] < 850 || shapes["unready"] < 20 || len(issuers) != 5 {
		t.Errorf("shapes %v, issuers %v", shapes, issuers)
	}
}

// fields returns the set of paths of a value, without the content of lists.
func fields(prefix string, value any, into map[string]bool) map[string]bool {
	object, ok := value.(map[string]any)
	if !ok {
		into[prefix] = true
	}
	for name, field := range object {
		fields(prefix+"."+name, field, into)
	}
	return into
}

func TestOneShapeHasOneSetOfFields(t *testing.T) {
	for _, size := range []string{sizeSmall, sizeLarge} {
		byShape := map[string]map[string]bool{}
		for i := range 500 {
			id := newIdentity(3, i, 4)
			c := certificateContent(id, size)
			got := fields("", map[string]any{"a": c.annotations, "l": c.labels, "b": c.body},
				map[string]bool{})
			if want, known := byShape[c.shape]; known {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s, shape %s:\n%s", size, c.shape, diff)
				}
			}
			byShape[c.shape] = got
		}
	}
}

func TestEncodeKeepsServerFields(t *testing.T) {
	stored := `{"apiVersion":"cert-manager.io/v1","kind":"Certificate",
		"metadata":{"name":"sample","uid":"x","managedFields":[
			{"manager":"controller","operation":"Update","subresource":"status","time":"2020-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{}}},
			{"manager":"helm","operation":"Update","time":"2020-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]},
		"spec":{"secretName":"sample","privateKey":{"encoding":"PKCS1","size":1}}}`
	tmpl, err := parseTemplate([]byte(stored))
	if err != nil {
		t.Fatal(err)
	}
	id := newIdentity(1, 1, 4)
	data, err := tmpl.encode(id, objectContent{body: map[string]any{
		"spec": map[string]any{"secretName": "mine", "privateKey": map[string]any{"size": int64(2048)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
		"metadata": map[string]any{
			"name": id.name, "namespace": id.namespace, "uid": id.uid, "generation": 1.0,
			"creationTimestamp": timestamp(id.created),
			"managedFields": []any{
				map[string]any{"manager": "helm", "operation": "Update", "time": timestamp(id.created),
					"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{}}},
				map[string]any{"manager": "controller", "operation": "Update", "subresource": "status",
					"time": timestamp(id.created.Add(7e9)), "fieldsType": "FieldsV1",
					"fieldsV1": map[string]any{"f:status": map[string]any{}}},
			},
		},
		"spec": map[string]any{"secretName": "mine", "privateKey": map[string]any{"encoding": "PKCS1",
			"size": 2048.0}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("encoded object (-want +got):\n%s", diff)
	}
}

// TestFillIsLikeTheAPI compares objects written to etcd with objects that the API server stored. They must
// be equal except for identity and time.
func TestFillIsLikeTheAPI(t *testing.T) {
	for _, size := range []string{sizeSmall, sizeLarge} {
		t.Run(size, func(t *testing.T) { compareWithAPI(t, size) })
	}
}

func compareWithAPI(t *testing.T, size string) {
	api := sharedClient(t)
	written := fillShared(t, "--count", "30", "--namespaces", "3", "--size", size, "--seed", "7")
	for i := range 30 {
		id := newIdentity(7, i, 3)
		direct := written[id.name]
		resource := api.Resource(certificateResource).Namespace(id.namespace)
		content := certificateContent(id, size)
		id.name = "api-" + id.name
		if err := createThroughAPI(t.Context(), api, buildObject(id, content)); err != nil {
			t.Fatal(err)
		}
		stored, err := resource.Get(t.Context(), id.name, metav1.GetOptions{})
		if err := errors.Join(err, resource.Delete(t.Context(), id.name,
			metav1.DeleteOptions{})); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(withoutIdentity(stored), withoutIdentity(&direct)); diff != "" {
			t.Errorf("object %d (-api +etcd):\n%s", i, diff)
		}
	}
}

// withoutIdentity removes the fields that always differ. The order of managers depends on time, and the API's
// managers have equal times.
func withoutIdentity(object *unstructured.Unstructured) map[string]any {
	for _, field := range []string{"name", "uid", "creationTimestamp", "resourceVersion"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	managers := map[string]any{}
	for _, entry := range object.GetManagedFields() {
		entry.Time = nil
		managers[entry.Manager+"/"+entry.Subresource] = entry
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	object.Object["managers"] = managers
	return object.Object
}

// fillShared writes Certificates to the shared sandbox and returns all by name. They are deleted at the end
// of the test.
func fillShared(t *testing.T, args ...string) map[string]unstructured.Unstructured {
	t.Helper()
	args = append([]string{"fill", "--dir", sharedDir(t)}, args...)
	mustSandbox(t, args...)
	found, err := sharedClient(t).Resource(certificateResource).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	filled := map[string]unstructured.Unstructured{}
	for _, object := range found.Items {
		filled[object.GetName()] = object
	}
	if r := runSandbox(t, args...); r.code != 0 || !strings.Contains(r.stderr, "wrote 0 Certificates") {
		t.Errorf("the second fill = %+v, want no writes", r)
	}
	t.Cleanup(func() {
		for name, object := range filled {
			if err := sharedClient(t).Resource(certificateResource).Namespace(object.GetNamespace()).Delete(
				context.Background(), name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	return filled
}

func TestFillIsCompleteAndCanBeChanged(t *testing.T) {
	namespaces, versions := map[string]bool{}, map[string]bool{}
	filled := fillShared(t, "--count", "500", "--namespaces", "7", "--seed", "5")
	for _, object := range filled {
		namespaces[object.GetNamespace()] = true
		versions[object.GetResourceVersion()] = true
	}
	if len(filled) != 500 || len(namespaces) != 7 || len(versions) != 500 {
		t.Errorf("%d objects in %d namespaces with %d versions, want 500, 7 and 500", len(filled),
			len(namespaces), len(versions))
	}
	object := filled[newIdentity(5, 0, 7).name]
	patched, err := sharedClient(t).Resource(certificateResource).Namespace(object.GetNamespace()).Patch(
		t.Context(), object.GetName(), types.MergePatchType, []byte(`{"spec":{"secretName":"other"}}`),
		metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if patched.GetUID() != object.GetUID() || patched.GetGeneration() != 2 ||
		len(patched.GetManagedFields()) != 3 {
		t.Errorf("the patched object has UID %s, generation %d, managers %v; want the same UID, 2, 3 managers", patched.GetUID(), patched.GetGeneration(),
			patched.GetManagedFields())
	}
}

func TestFillErrors(t *testing.T) {
	empty := t.TempDir()
	up(t, empty)
	tests := map[string]struct {
		args []string
		want string
	}{
		"unknown size":       {[]string{"--dir", sharedDir(t), "--size", "huge"}, `"small" or "large"`},
		"no directory":       {nil, `"dir" not set`},
		"nothing runs there": {[]string{"--dir", t.TempDir()}, "no sandbox is running"},
		"no objects":         {[]string{"--dir", sharedDir(t), "--count", "0"}, "at least 1"},
		"no definition":      {[]string{"--dir", empty}, "load cert-manager's CRDs first"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := runSandbox(t, append([]string{"fill"}, test.args...)...)
			if r.code != 1 || !strings.Contains(r.stderr, test.want) {
				t.Errorf("want exit code 1 and %q, got %+v", test.want, r)
			}
		})
	}
}
