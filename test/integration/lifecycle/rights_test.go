package lifecycle_test

import (
	"context"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestPatternWithRightsInNamespaces runs an informer as a user who can read widgets only in some namespaces.
// The informer starts to read a matching namespace when it is created, and stops when it is deleted. It
// switches to a cluster-wide watch when that right is granted, and keeps its objects.
func TestPatternWithRightsInNamespaces(t *testing.T) {
	widgets, base := harness.NewCRD(harness.Group(t), "Widget"), harness.Namespace(t)
	gvr := resourceOf(widgets)
	harness.InstallCRDs(t, widgets)
	user := harness.NewUser(t, "reader")
	user.Grant(t, "", readRule("", "namespaces"))
	s := newFixture(t, dynamicinformer.Options{Config: user.Config(t),
		Defaults: dynamicinformer.ResourceOptions{
			Namespaces: dynamicinformer.MatchingNamespaces([]string{base + "-*"}, nil)}}, nil)
	createReadable := func(namespace, name string) {
		harness.Apply(t, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}}})
		user.Grant(t, namespace, readRule(gvr.Group, gvr.Resource))
		s.createIn(widgets, gvr.Version, namespace, name)
	}
	createReadable(base, "outside")
	createReadable(base+"-a", "a")
	createReadable(base+"-b", "b")
	i, j := s.startInformer(gvr)
	j.expect("add a", "add b")
	createReadable(base+"-c", "c")
	j.expect("add c")
	s.removeNamespace(base + "-b")
	j.expect("delete b")
	if current := i.Status(); current.State != status.Synced || current.Incarnation != 1 {
		t.Errorf("Status() = %+v, want Synced in incarnation 1", current)
	}

	user.Grant(t, "", readRule(gvr.Group, gvr.Resource))
	i.Retry() // without this call, the informer retries after a minute
	harness.Eventually(t, func(context.Context) error {
		if all := s.factory.Status(); len(all) != 1 {
			return fmt.Errorf("the namespaces are still followed: %+v", all)
		}
		return nil
	})
	s.createIn(widgets, gvr.Version, base+"-a", "later")
	j.awaitLive("later") // the switch updates the other objects
}

func readRule(group, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource},
		Verbs: []string{"list", "watch"}}
}

// removeNamespace deletes a namespace and finalizes it, because no namespace controller runs.
func (s *fixture) removeNamespace(name string) {
	s.Helper()
	namespaces := s.admin.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	if err := namespaces.Delete(s.ctx, name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
	namespace, err := namespaces.Get(s.ctx, name, metav1.GetOptions{})
	if err != nil {
		s.Fatal(err)
	}
	unstructured.RemoveNestedField(namespace.Object, "spec", "finalizers")
	if _, err := namespaces.Update(s.ctx, namespace, metav1.UpdateOptions{}, "finalize"); err != nil {
		s.Fatal(err)
	}
}
