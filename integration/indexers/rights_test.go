package indexers_test

import (
	"context"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

var namespacesGVR = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// TestPatternWithRightsInNamespaces runs an informer as a user who can read widgets only in some
// namespaces. The informer starts to read a matching namespace when it is created, and stops when it is
// deleted. It switches to a cluster-wide watch when that right is granted, and remains the same informer.
func TestPatternWithRightsInNamespaces(t *testing.T) {
	group, base := harness.Group(t), harness.Namespace(t)
	harness.InstallCRDs(t, harness.NewCRD(group, "Widget"))
	user := harness.NewUser(t, "reader")
	user.Grant(t, "", readRule("", "namespaces"))
	s := newFixtureAs(t, user.Config(t))
	for _, suffix := range []string{"", "-a", "-b"} {
		s.namespaceWithWidget(base+suffix, group, user)
	}
	b := s.bindConfig(parseConfig(t, `  - name: widgets
    match: {group: `+group+`, resource: widgets}
    namespaces: {include: ["`+base+`-*"]}
    indexes: [{name: color, path: .spec.color}]
`))
	s.awaitQuery(b, "widgets", "color=red", base+"-a/x", base+"-b/x")
	target, err := b.Target("widgets")
	if err != nil {
		t.Fatal(err)
	}
	s.namespaceWithWidget(base+"-c", group, user)
	s.awaitQuery(b, "widgets", "color=red", base+"-a/x", base+"-b/x", base+"-c/x")
	s.removeNamespace(base + "-b")
	s.awaitQuery(b, "widgets", "color=red", base+"-a/x", base+"-c/x")
	if current := target.Informer.Status(); current.State != status.Synced || current.Incarnation != 1 {
		t.Errorf("Status() = %+v, want Synced in incarnation 1", current)
	}

	user.Grant(t, "", readRule(group, "widgets"))
	target.Informer.Retry() // without this call, the informer retries after a minute
	harness.Eventually(t, func(context.Context) error {
		if all := s.factory.Status(); len(all) != 1 {
			return fmt.Errorf("the namespaces are still followed: %+v", all)
		}
		return nil
	})
	harness.Apply(t, object(group, "Widget", base+"-a", "y", m{"color": "red"}))
	s.awaitQuery(b, "widgets", "color=red && namespace="+base+"-a", base+"-a/x", base+"-a/y")
	if same, err := b.Target("widgets"); err != nil || same.Informer != target.Informer {
		t.Errorf("Target() returned another informer: %v", err)
	}
}

// namespaceWithWidget creates a namespace with a widget that the user may read.
func (s *fixture) namespaceWithWidget(namespace, group string, user *harness.User) {
	s.Helper()
	harness.Apply(s, &unstructured.Unstructured{Object: m{"apiVersion": "v1", "kind": "Namespace",
		"metadata": m{"name": namespace}}})
	user.Grant(s, namespace, readRule(group, "widgets"))
	harness.Apply(s, object(group, "Widget", namespace, "x", m{"color": "red"}))
}

func readRule(group, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource},
		Verbs: []string{"list", "watch"}}
}

// removeNamespace deletes a namespace and finalizes it, because no namespace controller runs.
func (s *fixture) removeNamespace(name string) {
	s.Helper()
	namespaces := s.admin.Resource(namespacesGVR)
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
