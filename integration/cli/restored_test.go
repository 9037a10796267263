package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/integration/harness"
)

// TestServeAfterARestore restores etcd from a backup while crdcache serve runs. It must answer with the
// objects of the restored API server.
func TestServeAfterARestore(t *testing.T) {
	runtimeDir, err := os.MkdirTemp("", "crdcache") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(runtimeDir) })
	t.Setenv("XDG_RUNTIME_DIR", runtimeDir)
	widgets := schema.GroupVersionResource{Group: harness.Group(t), Version: "v1", Resource: "widgets"}
	harness.InstallCRDs(t, harness.NewCRD(widgets.Group, "Widget"))
	namespace := harness.Namespace(t)
	client, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	objects := client.Resource(widgets).Namespace(namespace)
	create := func(name string) *unstructured.Unstructured {
		t.Helper()
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(widgets.GroupVersion().WithKind("Widget"))
		o.SetName(name)
		created, err := objects.Create(t.Context(), o, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return created
	}
	create("same")
	changed := create("changed")
	create("deleted")
	restore := harness.BackUpEtcd(t)

	crdcache := harness.Crdcache(t)
	name := widgets.GroupResource().String()
	run(t, crdcache, "serve", name, "--detach").expect(t, 0, "", "serves; ")
	t.Cleanup(func() { run(t, crdcache, "serve", "stop").expect(t, 0, "has ended", "") })
	status := run(t, crdcache, "serve", "status")
	socket := regexp.MustCompile(`(?m)^socket: (.*)$`).FindStringSubmatch(status.stdout)
	if socket == nil {
		t.Fatalf("the status is %s%s", status.stdout, status.stderr)
	}
	dump := func() (map[string]string, error) {
		r := run(t, crdcache, "dump", name, "-A", "-o", "json", "--cache", socket[1])
		if r.code != 0 {
			return nil, errors.New(r.stderr)
		}
		var list struct {
			Items []metav1.PartialObjectMetadata
		}
		err := json.Unmarshal([]byte(r.stdout), &list)
		return versionsOf(list.Items), err
	}
	changed.SetLabels(map[string]string{"changed": "true"})
	if _, err := objects.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := objects.Delete(t.Context(), "deleted", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for n := range 100 { // the restored server will not reach these versions soon
		create(fmt.Sprint("lost-", n))
	}
	if got, err := dump(); err != nil || len(got) != 102 {
		t.Fatalf("before the restore there are %v, %v", got, err)
	}
	restore()
	harness.Eventually(t, func(ctx context.Context) error {
		got, err := dump()
		if err != nil {
			return err
		}
		list, err := objects.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, o := range list.Items {
			if version, want := got[o.GetName()], o.GetResourceVersion(); version != want {
				return fmt.Errorf("%s is of version %q, want %s", o.GetName(), version, want)
			}
		}
		if len(got) != len(list.Items) {
			return fmt.Errorf("there are %v, and %d at the API server", got, len(list.Items))
		}
		return nil
	})
}

// versionsOf returns the resource versions of objects by name.
func versionsOf(items []metav1.PartialObjectMetadata) map[string]string {
	versions := map[string]string{}
	for _, o := range items {
		versions[o.Name] = o.ResourceVersion
	}
	return versions
}
