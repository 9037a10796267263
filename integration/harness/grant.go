package harness

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// GrantRead lets the user of UnprivilegedContext list and watch types, until the test ends. The server learns
// of rights with a delay: both times it is waited until it knows.
func GrantRead(t testing.TB, types ...schema.GroupVersionResource) {
	t.Helper()
	user, err := dynamic.NewForConfig(UnprivilegedConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	list := func(ctx context.Context, gvr schema.GroupVersionResource) error {
		_, err := user.Resource(gvr).List(ctx, metav1.ListOptions{Limit: 1})
		return err
	}
	for _, gvr := range types {
		t.Cleanup(func() { // after Apply has removed the rights
			Eventually(t, func(ctx context.Context) error {
				if err := list(ctx, gvr); !apierrors.IsForbidden(err) {
					return fmt.Errorf("listing %s: %v, want forbidden again", gvr, err)
				}
				return nil
			})
		})
		Apply(t, readRights(gvr)...)
		Eventually(t, func(ctx context.Context) error { return list(ctx, gvr) })
	}
}

// readRights are a role and its binding to the unprivileged user.
func readRights(gvr schema.GroupVersionResource) []*unstructured.Unstructured {
	const group = "rbac.authorization.k8s.io"
	name := "readers-of-" + gvr.GroupResource().String()
	object := func(kind string, fields map[string]any) *unstructured.Unstructured {
		fields["apiVersion"], fields["kind"], fields["metadata"] = group+"/v1", kind, map[string]any{"name": name}
		return &unstructured.Unstructured{Object: fields}
	}
	return []*unstructured.Unstructured{
		object("ClusterRole", map[string]any{"rules": []any{map[string]any{
			"apiGroups": []any{gvr.Group}, "resources": []any{gvr.Resource}, "verbs": []any{"list", "watch"},
		}}}),
		object("ClusterRoleBinding", map[string]any{
			"roleRef":  map[string]any{"apiGroup": group, "kind": "ClusterRole", "name": name},
			"subjects": []any{map[string]any{"apiGroup": group, "kind": "User", "name": UnprivilegedContext}},
		}),
	}
}
