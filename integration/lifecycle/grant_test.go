package lifecycle_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestGrantedLater: who may not read a type is told at once, and may begin to when the right comes.
func TestGrantedLater(t *testing.T) {
	const user = "latecomer"
	config := harness.Config(t)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	s := newScene(t, dynamicinformer.Options{Config: config}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.follow(resourceOf(widgets))

	var missing *dynamicinformer.NotSyncedError
	_, err := s.factory.WaitForSync(s.ctx)
	if !errors.As(err, &missing) || missing.Missing[0].Reason != dynamicinformer.ReasonForbidden || missing.Cause != nil {
		t.Fatalf("WaitForSync returns %v, want it forbidden", err)
	}
	if status := missing.Missing[0]; status.State != dynamicinformer.StateDegraded || !apierrors.IsForbidden(status.LastError) {
		t.Errorf("the status is %+v, want it degraded", status)
	}
	j.expectNothing()

	rule := map[string]any{"apiGroups": []any{resourceOf(widgets).Group}, "resources": []any{"widgets"}, "verbs": []any{"list", "watch"}}
	harness.Apply(t,
		rbac("ClusterRole", map[string]any{"rules": []any{rule}}),
		rbac("ClusterRoleBinding", map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "widget-reader"},
			"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}},
		}))
	j.expect("add a")
	if status := s.awaitSynced(i, 1); status.Generation != 1 || status.LastError != nil {
		t.Errorf("the status is %+v, want generation 1 and no error", status)
	}
	if _, err := s.factory.WaitForSync(s.ctx); err != nil {
		t.Error(err)
	}
}

func rbac(kind string, content map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: content}
	o.SetAPIVersion("rbac.authorization.k8s.io/v1")
	o.SetKind(kind)
	o.SetName("widget-reader")
	return o
}
