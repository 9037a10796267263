package lifecycle_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestVersionTakesOver stops serving the followed version. If the policy has another version, the informer
// switches to it without events of deletion or creation.
func TestVersionTakesOver(t *testing.T) {
	for _, tc := range []struct {
		policy      dynamicinformer.VersionPolicy
		first, next int // versions of the definition: v1, then v2
	}{
		{dynamicinformer.PreferredVersion(), 1, 0},
		{dynamicinformer.VersionOrder("v1", "v2"), 0, 1},
	} {
		t.Run(tc.policy.String(), func(t *testing.T) {
			t.Parallel()
			s := newFixture(
				t, dynamicinformer.Options{Defaults: dynamicinformer.ResourceOptions{
					Versions: tc.policy}}, nil)
			widgets := withSecondVersion(harness.NewCRD(harness.Group(t), "Widget"))
			harness.InstallCRDs(t, widgets)
			s.create(widgets, "a")
			i, j := s.startInformer(resourceOf(widgets))
			j.expect("add a")
			if status := s.awaitSynced(i, 1); status.Version != versionName(tc.first) {
				t.Errorf("the status is %+v, want the version %s", status, versionName(tc.first))
			}

			s.setServed(widgets, tc.first, false)
			if status := s.awaitSynced(i, 2); status.Version != versionName(tc.next) ||
				status.Incarnation != 2 {
				t.Errorf("the status is %+v, want incarnation 2 with the version %s", status,
					versionName(tc.next))
			}
			j.expect("update a")
			// If the server rebuilds the type's storage later, the watch ends again and "a" is updated again.
			s.createIn(widgets, versionName(tc.next), metav1.NamespaceDefault, "b")
			j.awaitLive("b")
			for _, o := range i.GetStore().List() {
				if got := o.(*unstructured.Unstructured).GroupVersionKind().Version; got != versionName(
					tc.next) {
					t.Errorf("the cache holds an object of %s, want %s", got, versionName(tc.next))
				}
			}

			// When the preferred or first version is served again, the informer keeps the working one.
			s.setServed(widgets, tc.first, true)
			s.createIn(widgets, versionName(tc.next), metav1.NamespaceDefault, "c")
			j.awaitLive("c")
			if status := s.awaitSynced(i, 2); status.Incarnation != 2 {
				t.Errorf("the status is %+v, want incarnation 2 still", status)
			}
			j.expectNever("delete a", "add a")
		})
	}
}

func versionName(index int) string { return fmt.Sprintf("v%d", index+1) }

// TestChangedDefinition changes a definition without changing the type. The informer continues.
func TestChangedDefinition(t *testing.T) {
	t.Parallel()
	s := newFixture(t, dynamicinformer.Options{}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.startInformer(resourceOf(widgets))
	j.expect("add a")
	s.awaitSynced(i, 1)
	for _, change := range []struct{ name, patch string }{
		{"label", `[{"op":"add","path":"/metadata/labels","value":{"changed":"yes"}}]`},
		{"columns", `[{"op":"add","path":"/spec/versions/0/additionalPrinterColumns","value":[{"name":"Size","type":"string","jsonPath":".spec.size"}]}]`},
		{"schema", `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":"another one"}]`},
		{"version", `[{"op":"add","path":"/spec/versions/-","value":{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}]`},
		{"storage version", `[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`},
	} {
		s.patchDefinition(widgets, []byte(change.patch))
		name := "after-" + fmt.Sprint(len(change.patch))
		s.create(widgets, name)
		j.awaitLive(name)
		if status := s.awaitSynced(i, 1); status.Incarnation != 1 {
			t.Errorf("%s: the status is %+v, want incarnation 1", change.name, status)
		}
		j.expectNever("delete a", "add a")
	}
}
