package e2e

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

var (
	certificates = schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1",
		Resource: "certificates"}
	printers = schema.GroupVersionResource{Group: "office.example.com", Version: "v1",
		Resource: "printers"}
)

func TestLoadedObjectsAreThere(t *testing.T) {
	c := client(t, sharedDir(t), "")
	for _, name := range []string{"first", "second"} {
		if _, err := c.Resource(configMaps).Namespace("printing").Get(t.Context(), name,
			metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	printer, err := c.Resource(printers).Get(t.Context(), "hall", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pages, _, _ := unstructured.NestedInt64(printer.Object, "status", "pages"); pages != 12 {
		t.Errorf("the status was not loaded: %v", printer.Object["status"])
	}
}

func TestAuditLog(t *testing.T) {
	if log := readFile(filepath.Join(sharedDir(t), "audit.log")); !strings.Contains(log,
		`"resource":"customresourcedefinitions"`) {
		t.Errorf("no request for CRDs in the audit log:\n%.2000s", log)
	}
}

// fill writes Certificates and returns all by name. They are deleted at the end of the test.
func fill(t *testing.T, args ...string) map[string]unstructured.Unstructured {
	t.Helper()
	dir := sharedDir(t)
	c := client(t, dir, "")
	mustSandbox(t, append([]string{"fill", "--dir", dir}, args...)...)
	filled := list(t, c)
	t.Cleanup(func() {
		for name, object := range filled {
			if err := c.Resource(certificates).Namespace(object.GetNamespace()).Delete(context.Background(),
				name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	return filled
}

func list(t *testing.T, c dynamic.Interface) map[string]unstructured.Unstructured {
	t.Helper()
	objects := map[string]unstructured.Unstructured{}
	found, err := c.Resource(certificates).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range found.Items {
		objects[object.GetName()] = object
	}
	return objects
}

// TestFillThroughEtcdIsLikeTheAPI compares objects written to etcd with objects that the API server stored.
// They may differ only in identity and time.
func TestFillThroughEtcdIsLikeTheAPI(t *testing.T) {
	tests := map[string][]string{
		"small": {"--count", "60", "--namespaces", "3"},
		"large": {"--count", "30", "--namespaces", "3", "--size", "large"},
	}
	for name, args := range tests {
		t.Run(name, func(t *testing.T) {
			var written []map[string]unstructured.Unstructured
			for _, via := range []string{"etcd", "api"} {
				t.Run(via, func(t *testing.T) {
					written = append(written, fill(t, append(args, "--via", via)...))
				})
			}
			for _, objects := range written {
				for _, object := range objects {
					forgetIdentity(object)
				}
			}
			if diff := cmp.Diff(written[1], written[0]); diff != "" {
				t.Errorf("objects differ (-api +etcd):\n%s", diff)
			}
		})
	}
}

// forgetIdentity removes the fields that always differ. The order of managers depends on time, and the API's
// managers have equal times.
func forgetIdentity(object unstructured.Unstructured) {
	for _, field := range []string{"uid", "creationTimestamp", "resourceVersion"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	managers := map[string]any{}
	for _, entry := range object.GetManagedFields() {
		entry.Time = nil
		managers[entry.Manager+"/"+entry.Subresource] = entry
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	object.Object["managers"] = managers
}

func TestFillIsDeterministicAndComplete(t *testing.T) {
	args := []string{"--count", "500", "--namespaces", "7", "--seed", "5"}
	dir := sharedDir(t)
	var written []map[string]unstructured.Unstructured
	for range 2 {
		t.Run("fill", func(t *testing.T) {
			written = append(written, fill(t, args...))
			r := runSandbox(t, append([]string{"fill", "--dir", dir}, args...)...)
			if r.code != 0 || !strings.Contains(r.stderr, "500 existed already") {
				t.Errorf("filling twice: %+v", r)
			}
		})
	}
	spread, versions := map[string]bool{}, map[string]bool{}
	for _, objects := range written {
		if len(objects) != 500 {
			t.Errorf("%d objects, want 500", len(objects))
		}
		for _, object := range objects {
			spread[object.GetNamespace()] = true
			versions[object.GetResourceVersion()] = true
			object.SetResourceVersion("")
		}
	}
	if len(spread) != 7 {
		t.Errorf("namespaces %v, want 7", spread)
	}
	if len(versions) != 1000 {
		t.Errorf("%d resource versions for 1000 writes: each must have its own", len(versions))
	}
	if diff := cmp.Diff(written[0], written[1]); diff != "" {
		t.Errorf("the same seed made different objects:\n%s", diff)
	}
}

func TestFilledObjectsCanBeChanged(t *testing.T) {
	objects := fill(t, "--count", "3")
	c := client(t, sharedDir(t), "")
	for name, object := range objects {
		patch := []byte(`{"spec":{"secretName":"other"}}`)
		patched, err := c.Resource(certificates).Namespace(object.GetNamespace()).Patch(t.Context(), name,
			types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if patched.GetUID() != object.GetUID() || patched.GetGeneration() != 2 ||
			len(patched.GetManagedFields()) != 3 {
			t.Errorf("uid %s, generation %d, managers %v", patched.GetUID(), patched.GetGeneration(),
				patched.GetManagedFields())
		}
	}
}

func TestFillErrors(t *testing.T) {
	dir := sharedDir(t)
	tests := map[string]struct {
		args []string
		want string
	}{
		"unknown size":       {[]string{"--dir", dir, "--size", "huge"}, `"small" or "large"`},
		"unknown way":        {[]string{"--dir", dir, "--via", "mail"}, `"etcd" or "api"`},
		"no server":          {nil, "[dir kubeconfig]"},
		"nothing runs there": {[]string{"--dir", t.TempDir()}, "no sandbox is running"},
		"etcd without a --dir": {[]string{"--kubeconfig", filepath.Join(dir, "kubeconfig"), "--via", "etcd"},
			"needs --dir"},
		"no objects": {[]string{"--dir", dir, "--count", "0"}, "at least 1"},
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

func TestCompactExpiresOldVersions(t *testing.T) {
	dir := sharedDir(t)
	c := client(t, dir, "").Resource(configMaps).Namespace("printing")
	old, err := c.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	exact := metav1.ListOptions{ResourceVersion: old.GetResourceVersion(),
		ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	fill(t, "--count", "5", "--seed", "3")
	if _, err := c.List(t.Context(), exact); err != nil {
		t.Fatalf("before compaction: %v", err)
	}
	revision, err := strconv.Atoi(strings.TrimSpace(mustSandbox(t, "compact", "--dir", dir)))
	if err != nil {
		t.Fatal(err)
	}
	if oldRevision, _ := strconv.Atoi(old.GetResourceVersion()); revision <= oldRevision {
		t.Errorf("compacted at %d, want more than %d", revision, oldRevision)
	}
	eventually(t, "an exact list expires", func() bool {
		_, err := c.List(t.Context(), exact)
		return apierrors.IsResourceExpired(err)
	})
	mustSandbox(t, "restart", "apiserver", "--dir", dir)
	w, err := c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: old.GetResourceVersion()})
	if err == nil {
		defer w.Stop()
		event := <-w.ResultChan()
		err = apierrors.FromObject(event.Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("want a watch from an old version to expire, got %v", err)
	}
}
