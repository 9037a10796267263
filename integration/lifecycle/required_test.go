package lifecycle_test

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestRequired: a type that a program cannot do without is waited for until it is installed.
func TestRequired(t *testing.T) {
	required := true
	s := newScene(t, dynamicinformer.Options{Defaults: dynamicinformer.ResourceOptions{Required: &required}}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	i, j := s.follow(resourceOf(widgets))
	s.await(i, status.Pending, status.ReasonNotInstalled)
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	var missing *dynamicinformer.NotSyncedError
	if _, err := s.factory.WaitForSync(ctx); !errors.As(err, &missing) || !errors.Is(missing.Cause, context.Canceled) {
		t.Errorf("WaitForSync returns %v, want it to wait for its context", err)
	}
	s.awaitCondition(status.ConditionReady, metav1.ConditionFalse)

	waited := make(chan error, 1)
	go func() { // ended by the installation, or by the scene's context
		_, err := s.factory.WaitForSync(s.ctx)
		waited <- err
	}()
	harness.InstallCRDs(t, widgets)
	if err := <-waited; err != nil {
		t.Error(err)
	}
	s.awaitCondition(status.ConditionReady, metav1.ConditionTrue)
	s.create(widgets, "a")
	j.expect("add a")
}

// TestRequiredUntilGranted: the right to read such a type may be granted while it is waited for.
func TestRequiredUntilGranted(t *testing.T) {
	required := true
	s := newScene(t, dynamicinformer.Options{
		Config: harness.UnprivilegedConfig(t), Defaults: dynamicinformer.ResourceOptions{Required: &required},
	}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.follow(resourceOf(widgets))
	waited := make(chan error, 1)
	go func() { waited <- i.WaitForSync(s.ctx) }() // ended by the right, or by the scene's context
	s.await(i, status.Degraded, status.ReasonForbidden)
	s.awaitCondition(status.ConditionReady, metav1.ConditionFalse)
	select {
	case err := <-waited:
		t.Fatalf("without the right, the wait ended with %v", err)
	default:
	}
	harness.GrantRead(t, resourceOf(widgets))
	if err := <-waited; err != nil {
		t.Error(err)
	}
	j.expect("add a")
	s.awaitCondition(status.ConditionReady, metav1.ConditionTrue)
}
