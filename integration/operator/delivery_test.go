package operator_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/integration/harness"
)

// TestDelivers follows a workload from its creation to its deletion.
func TestDelivers(t *testing.T) {
	install(t, "workloads", "environments", "releases")
	s := newFixture(t)
	o := s.startOperator()
	workload := s.newWorkload("web", "here")
	s.create(workload)
	s.awaitCondition("web", "Ready", metav1.ConditionFalse)

	s.applyEnvironment("here", "north")
	s.awaitCondition("web", "Ready", metav1.ConditionTrue)
	s.awaitRegion("web", "north")
	s.applyEnvironment("here", "south")
	s.awaitRegion("web", "south")

	t.Run("settings that are removed come back", func(t *testing.T) {
		s.delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "web"}})
		s.awaitRegion("web", "south")
	})
	t.Run("a release holds a workload that is deleted", func(t *testing.T) {
		release := s.newObject("Release", "web-1", map[string]any{"workload": "web", "version": "1.0.0"})
		s.create(release)
		o.awaitCached(t, release)
		s.delete(workload)
		// The events of this workload follow the deletion.
		s.create(s.newWorkload("next", "here"))
		s.awaitCondition("next", "Ready", metav1.ConditionTrue)
		held := &Workload{}
		if err := s.Get(t.Context(), client.ObjectKeyFromObject(workload), held); err != nil ||
			len(held.Finalizers) != 1 {
			t.Fatalf("the workload has the finalizers %q, %v; want that of the operator",
				held.Finalizers, err)
		}
		if err := unstructured.SetNestedField(release.Object, "Succeeded", "status", "phase"); err != nil {
			t.Fatal(err)
		}
		if err := s.Update(t.Context(), release); err != nil {
			t.Fatal(err)
		}
		s.awaitGone(workload)
	})
}

// TestRemaining checks that the operator's writes preserve fields that its Go types lack.
func TestRemaining(t *testing.T) {
	install(t, "workloads", "environments", "releases")
	s := newFixture(t)
	s.applyEnvironment("here", "north")
	workload := s.newWorkload("web", "here")
	if err := unstructured.SetNestedField(workload.Object, "99.95", "metadata", "annotations",
		"slo"); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(workload.Object, []any{"ada@example.com"}, "spec",
		"owners"); err != nil {
		t.Fatal(err)
	}
	workload.SetFinalizers([]string{"demo.crdcache.dev/drain"})
	s.create(workload)
	want := workload.DeepCopy()
	s.startOperator()
	s.awaitCondition("web", "Ready", metav1.ConditionTrue)
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(workload), workload); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(workload.Object["spec"]) != fmt.Sprint(want.Object["spec"]) {
		t.Errorf("the spec is %v, want %v", workload.Object["spec"], want.Object["spec"])
	}
	if finalizers := workload.GetFinalizers(); len(finalizers) != 2 ||
		!slices.Contains(finalizers, "demo.crdcache.dev/drain") {
		t.Errorf("the finalizers are %q, want that of the test and that of the operator", finalizers)
	}
}

// TestLeads checks that only one replica works at a time, and that the other takes over when the first ends.
func TestLeads(t *testing.T) {
	install(t, "workloads", "environments", "releases")
	s := newFixture(t)
	s.applyEnvironment("here", "north")
	first := s.startOperator()
	s.create(s.newWorkload("one", "here"))
	s.awaitCondition("one", "Ready", metav1.ConditionTrue)
	second := s.startOperator()
	select {
	case <-second.Elected():
		t.Fatal("two replicas are leaders")
	default:
	}
	first.stop()
	<-second.Elected()
	s.create(s.newWorkload("two", "here"))
	s.awaitCondition("two", "Ready", metav1.ConditionTrue)
}

// awaitGone waits until an object does not exist.
func (s *fixture) awaitGone(object client.Object) {
	s.Helper()
	harness.Eventually(s, func(ctx context.Context) error {
		err := s.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s still exists: %v", object.GetName(), err)
	})
}
