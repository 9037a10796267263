package harness

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// GrantRead gives the user of UnprivilegedContext the right to list and watch types until revoke is called or
// the test ends. Both directions wait until the server applies the change.
func GrantRead(t testing.TB, types ...schema.GroupVersionResource) (revoke func()) {
	t.Helper()
	return Grant(t, []string{"list", "watch"}, types...)
}

// Grant works like GrantRead for other verbs.
func Grant(t testing.TB, verbs []string, types ...schema.GroupVersionResource) (revoke func()) {
	t.Helper()
	var revokes []func()
	for _, gvr := range types {
		t.Cleanup(func() { AwaitRights(t, gvr, "", verbs, false) }) // runs after Apply has removed the rights
		rights := readRights(gvr, verbs)
		Apply(t, rights...)
		AwaitRights(t, gvr, "", verbs, true)
		revokes = append(revokes, func() {
			t.Helper()
			c := newClients(t)
			for _, o := range rights {
				resource := c.dynamic.Resource(rbacResource(o.GetKind()))
				if err := resource.Delete(t.Context(), o.GetName(), metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			AwaitRights(t, gvr, "", verbs, false)
		})
	}
	return func() {
		t.Helper()
		for _, r := range revokes {
			r()
		}
	}
}

// AwaitRights waits until the user of UnprivilegedContext has, or no longer has, the verbs in a namespace. An
// empty namespace means all.
func AwaitRights(t testing.TB, gvr schema.GroupVersionResource, namespace string,
	verbs []string, given bool) {
	t.Helper()
	user, err := dynamic.NewForConfig(UnprivilegedConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	review := schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1",
		Resource: "selfsubjectaccessreviews"}
	for _, verb := range verbs {
		question := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
			"spec": map[string]any{"resourceAttributes": map[string]any{
				"namespace": namespace, "verb": verb, "group": gvr.Group, "version": gvr.Version,
				"resource": gvr.Resource,
			}},
		}}
		Eventually(t, func(ctx context.Context) error {
			answer, err := user.Resource(review).Create(ctx, question, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			if allowed, _, _ := unstructured.NestedBool(answer.Object, "status",
				"allowed"); allowed != given {
				return fmt.Errorf("that the user may %s %s is %v, want %v", verb, gvr, allowed, given)
			}
			return nil
		})
	}
}

func rbacResource(kind string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1",
		Resource: strings.ToLower(kind) + "s"}
}

// readRights returns a role and its binding to the unprivileged user.
func readRights(gvr schema.GroupVersionResource, verbs []string) []*unstructured.Unstructured {
	const group = "rbac.authorization.k8s.io"
	name := "may-" + strings.Join(verbs, "-") + "-" + gvr.GroupResource().String()
	mayDo := make([]any, 0, len(verbs))
	for _, verb := range verbs {
		mayDo = append(mayDo, verb)
	}
	object := func(kind string, fields map[string]any) *unstructured.Unstructured {
		fields["apiVersion"], fields["kind"], fields["metadata"] = group+
			"/v1", kind, map[string]any{"name": name}
		return &unstructured.Unstructured{Object: fields}
	}
	return []*unstructured.Unstructured{
		object("ClusterRole", map[string]any{"rules": []any{map[string]any{
			"apiGroups": []any{gvr.Group}, "resources": []any{gvr.Resource}, "verbs": mayDo,
		}}}),
		object("ClusterRoleBinding", map[string]any{
			"roleRef":  map[string]any{"apiGroup": group, "kind": "ClusterRole", "name": name},
			"subjects": []any{map[string]any{"apiGroup": group, "kind": "User", "name": UnprivilegedContext}},
		}),
	}
}
