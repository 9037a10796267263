package cli_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/integration/harness"
)

// TestTree shows the objects that a Deployment owns, to the administrator and to a user who may not list some
// of the types.
func TestTree(t *testing.T) {
	ns := harness.Namespace(t)
	crdcache := harness.Crdcache(t)
	client, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	replicaSets := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	template := map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a"}}},
	}
	workload := map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"app": "web"}},
		"template": template}
	create := func(gvr schema.GroupVersionResource, kind, name string, spec any,
		owner *unstructured.Unstructured) *unstructured.Unstructured {
		t.Helper()
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": gvr.GroupVersion().String(), "kind": kind, "metadata": map[string]any{"name": name,
				"namespace": ns}, "spec": spec,
		}}
		if owner != nil {
			object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(),
				Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}})
		}
		created, err := client.Resource(gvr).Namespace(ns).Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return created
	}
	web := create(deployments, "Deployment", "web", workload, nil)
	set := create(replicaSets, "ReplicaSet", "web-1", workload, web)
	pod := create(pods, "Pod", "web-1-a", template["spec"], set)
	pod.Object["status"] = map[string]any{"phase": "Running",
		"conditions": []any{map[string]any{"type": "Ready", "status": "False",
			"reason": "ContainersNotReady"}}}
	if _, err := client.Resource(pods).Namespace(ns).UpdateStatus(t.Context(), pod,
		metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}

	all := run(t, crdcache, "tree", "deployment/web", "-n", ns, "--no-headers")
	all.expect(t, 0, "Deployment/web", "in the namespace "+ns)
	for _, want := range []string{"ReplicaSet/web-1 dependent",
		"Pod/web-1-a dependent Ready=False ContainersNotReady"} {
		if !strings.Contains(strings.Join(strings.Fields(all.stdout), " "), want) {
			t.Errorf("the tree lacks %q:\n%s", want, all.stdout)
		}
	}
	run(t, crdcache, "tree", "pods", "web-1-a", "-n", ns, "--types", "replicasets,deployments",
		"--no-headers").expect(t, 0, "owner", "read 3 types")

	harness.Grant(t, []string{"get", "list", "watch"}, deployments, replicaSets)
	some := run(t, crdcache, "tree", "deployment/web", "-n", ns, "--types", "replicasets,pods", "--context",
		harness.UnprivilegedContext)
	some.expect(t, 4, "ReplicaSet/web-1", "pods: may not be read")
	if strings.Contains(some.stdout, "Pod/") {
		t.Errorf("a tree of what may not be read:\n%s", some.stdout)
	}
	whole := run(t, crdcache, "tree", "deployment/web", "-n", ns, "--context", harness.UnprivilegedContext)
	whole.expect(t, 4, "ReplicaSet/web-1", "may not be read")
}
