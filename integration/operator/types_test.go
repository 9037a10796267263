package operator_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/integration/harness"
)

// TestRouteTypes installs and deletes types of routes while the operator runs.
func TestRouteTypes(t *testing.T) {
	install(t, "workloads", "environments", "releases")
	s := newFixture(t)
	s.applyEnvironment("here", "north")
	s.startOperator()
	s.create(s.newWorkload("web", "here"))
	s.awaitCondition("web", "Routed", metav1.ConditionFalse)
	for range 2 {
		t.Run("routes", func(t *testing.T) {
			install(t, "routes")
			route := s.newRoute("Route", "web", "www.example.com", "web")
			s.create(route)
			s.awaitHosts("web", "www.example.com")
			t.Run("of another kind", func(t *testing.T) {
				harness.InstallCRDs(t, harness.NewCRD("demo.crdcache.dev", "TCPRoute"))
				s.create(s.newRoute("TCPRoute", "web", "tcp.example.com", "web"))
				s.awaitHosts("web", "tcp.example.com, www.example.com")
			})
			s.awaitHosts("web", "www.example.com")
		})
		s.awaitCondition("web", "Routed", metav1.ConditionFalse)
	}
}

// TestMissingAtStart starts the operator before its types are installed.
func TestMissingAtStart(t *testing.T) {
	s := newFixture(t)
	s.startOperator()
	install(t, "workloads", "environments", "releases")
	s.applyEnvironment("here", "north")
	s.create(s.newWorkload("web", "here"))
	s.awaitCondition("web", "Ready", metav1.ConditionTrue)
}

// setTimes sets the transition times of the conditions. A condition that did not change keeps its time.
func (s *WorkloadStatus) setTimes(present WorkloadStatus) {
	for i := range s.Conditions {
		c := &s.Conditions[i]
		c.LastTransitionTime = metav1.Now()
		if was := meta.FindStatusCondition(present.Conditions, c.Type); was != nil && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
	}
}

// equals reports whether the present status has the same content. It may have further conditions.
func (s *WorkloadStatus) equals(present WorkloadStatus) bool {
	if s.ObservedGeneration != present.ObservedGeneration || s.Phase != present.Phase {
		return false
	}
	for _, c := range s.Conditions {
		if was := meta.FindStatusCondition(present.Conditions, c.Type); was == nil ||
			!equality.Semantic.DeepEqual(*was, c) {
			return false
		}
	}
	return true
}
