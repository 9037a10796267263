package indexers_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

var namespacesGVR = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// TestPatternWithRightsInNamespaces follows a user with rights in some namespaces. The informer includes
// matching namespaces as they are created and deleted. It switches to a cluster-wide watch when that right is
// granted, and remains the same informer.
func TestPatternWithRightsInNamespaces(t *testing.T) {
	group, base := harness.Group(t), harness.Namespace(t)
	harness.InstallCRDs(t, harness.NewCRD(group, "Widget"))
	widgets := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}
	harness.GrantRead(t, namespacesGVR)
	s := newFixtureAs(t, harness.UnprivilegedConfig(t))
	for _, suffix := range []string{"", "-a", "-b"} {
		s.namespaceWithWidget(base+suffix, widgets)
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
	s.namespaceWithWidget(base+"-c", widgets)
	s.awaitQuery(b, "widgets", "color=red", base+"-a/x", base+"-b/x", base+"-c/x")
	s.removeNamespace(base + "-b")
	s.awaitQuery(b, "widgets", "color=red", base+"-a/x", base+"-c/x")
	if current := target.Informer.Status(); current.State != status.Synced || current.Incarnation != 1 {
		t.Errorf("the status is %+v", current)
	}

	harness.GrantRead(t, widgets)
	target.Informer.Retry() // otherwise after a minute
	harness.Eventually(t, func(context.Context) error {
		if all := s.factory.Status(); len(all) != 1 {
			return fmt.Errorf("the namespaces are still followed: %+v", all)
		}
		return nil
	})
	harness.Apply(t, object(group, "Widget", base+"-a", "y", m{"color": "red"}))
	s.awaitQuery(b, "widgets", "color=red && namespace="+base+"-a", base+"-a/x", base+"-a/y")
	if same, err := b.Target("widgets"); err != nil || same.Informer != target.Informer {
		t.Errorf("another informer: %v", err)
	}
}

// namespaceWithWidget creates a namespace with a widget that the unprivileged user may read.
func (s *fixture) namespaceWithWidget(namespace string, widgets schema.GroupVersionResource) {
	s.Helper()
	const rbac = "rbac.authorization.k8s.io"
	of := func(apiVersion, kind, namespace, name string, fields m) *unstructured.Unstructured {
		fields["apiVersion"], fields["kind"], fields["metadata"] = apiVersion, kind, m{"namespace": namespace,
			"name": name}
		return &unstructured.Unstructured{Object: fields}
	}
	harness.Apply(s, &unstructured.Unstructured{Object: m{"apiVersion": "v1", "kind": "Namespace",
		"metadata": m{"name": namespace}}})
	harness.Apply(s,
		of(rbac+"/v1", "Role", namespace, "reader", m{"rules": []any{m{
			"apiGroups": []any{widgets.Group}, "resources": []any{widgets.Resource}, "verbs": []any{"list",
				"watch"},
		}}}),
		of(rbac+"/v1", "RoleBinding", namespace, "reader", m{
			"roleRef":  m{"apiGroup": rbac, "kind": "Role", "name": "reader"},
			"subjects": []any{m{"apiGroup": rbac, "kind": "User", "name": harness.UnprivilegedContext}},
		}),
		object(widgets.Group, "Widget", namespace, "x", m{"color": "red"}))
	harness.AwaitRights(s, widgets, namespace, []string{"list", "watch"}, true)
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
