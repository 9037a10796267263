package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

func TestIdentityDependsOnSeedAndIndexAlone(t *testing.T) {
	make := func(seed uint64, i int) map[string]any {
		id := newIdentity(seed, i, 4)
		return buildObject(id, newCertificateContent(id, sizeSmall)).Object
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
	ready, issuers := 0, map[any]int{}
	for i := range 1000 {
		id := newIdentity(1, i, 4)
		c := newCertificateContent(id, sizeSmall)
		if c.body["status"].(map[string]any)["notAfter"] != nil {
			ready++
		}
		issuers[c.body["spec"].(map[string]any)["issuerRef"].(map[string]any)["name"]]++
		if name := c.body["spec"].(map[string]any)["commonName"].(string); len(name) > 64 {
			t.Errorf("common name %q is longer than X.509 allows", name)
		}
	}
	if ready < 850 || ready > 980 || len(issuers) != 5 {
		t.Errorf("%d of 1000 are ready, from the issuers %v", ready, issuers)
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
		content := newCertificateContent(id, size)
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

// createThroughAPI creates an object and its status with two requests, like a tool and a controller.
func createThroughAPI(ctx context.Context, api dynamic.Interface, object *unstructured.Unstructured) error {
	client := api.Resource(certificateResource).Namespace(object.GetNamespace())
	created, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: specManager})
	if err != nil {
		return fmt.Errorf("create %s: %w", object.GetName(), err)
	}
	created.Object["status"] = object.Object["status"]
	if _, err := client.UpdateStatus(ctx, created,
		metav1.UpdateOptions{FieldManager: statusManager}); err != nil {
		return fmt.Errorf("update status of %s: %w", object.GetName(), err)
	}
	return nil
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
	mustRun(t, args...)
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
	startSandbox(t, empty)
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
