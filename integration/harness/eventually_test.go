package harness

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestEventually(t *testing.T) {
	t.Run("repeats until there is no error", func(t *testing.T) {
		calls := 0
		Eventually(t, func(context.Context) error {
			if calls++; calls < 3 {
				return errors.New("not yet")
			}
			return nil
		})
		if calls != 3 {
			t.Errorf("called %d times, want 3", calls)
		}
	})
	t.Run("ends with the last error", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		last := errors.New("still not")
		err := eventually(ctx, func(context.Context) error {
			cancel()
			return last
		})
		if !errors.Is(err, last) || !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v, want both the last and the context's", err)
		}
	})
}

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
