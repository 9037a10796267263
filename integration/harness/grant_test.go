package harness

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestGrant(t *testing.T) {
	user := newClient(t, UnprivilegedConfig(t)).Resource(configMaps)
	revoke := Grant(t, []string{"list"}, configMaps)
	if _, err := user.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := user.Watch(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("watching: %v, want forbidden", err)
	}
	revoke()
	if _, err := user.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing after the right was revoked: %v, want forbidden", err)
	}
}
