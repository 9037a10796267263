package lifecycle_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestRightsInNamespaces follows a type in two namespaces, with rights in one of them at first.
func TestRightsInNamespaces(t *testing.T) {
	here, there, elsewhere := harness.Namespace(t), harness.Namespace(t), harness.Namespace(t)
	s := newScene(t, dynamicinformer.Options{
		Config:   harness.UnprivilegedConfig(t),
		Defaults: dynamicinformer.ResourceOptions{Namespaces: dynamicinformer.InNamespaces(here, there)},
	}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	for _, ns := range []string{here, there, elsewhere} {
		s.createIn(widgets, "v1", ns, "in-"+ns)
	}
	s.grantIn(widgets, here)
	i, j := s.follow(resourceOf(widgets))
	status := s.await(i, status.Degraded, status.ReasonForbidden)
	if !strings.Contains(status.Message, there) {
		t.Errorf("the message is %q, want it to name %s", status.Message, there)
	}
	if i.HasSynced() {
		t.Error("it has synced without one of its namespaces")
	}
	s.grantIn(widgets, there)
	i.Retry() // rather than in a minute
	j.expect("add in-"+here, "add in-"+there)
	s.awaitSynced(i, 1)
	s.createIn(widgets, "v1", here, "later")
	j.expect("add later")
	j.expectNothing()
}

// grantIn lets the unprivileged user read a type in one namespace.
func (s *scene) grantIn(definition *unstructured.Unstructured, namespace string) {
	s.Helper()
	gvr := resourceOf(definition)
	object := func(kind string, fields map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: fields}
		o.SetAPIVersion("rbac.authorization.k8s.io/v1")
		o.SetKind(kind)
		o.SetNamespace(namespace)
		o.SetName("reader")
		return o
	}
	harness.Apply(s,
		object("Role", map[string]any{"rules": []any{map[string]any{
			"apiGroups": []any{gvr.Group}, "resources": []any{gvr.Resource}, "verbs": []any{"list", "watch"},
		}}}),
		object("RoleBinding", map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
			"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": harness.UnprivilegedContext}},
		}))
	harness.AwaitRights(s, gvr, namespace, []string{"list", "watch"}, true)
}
