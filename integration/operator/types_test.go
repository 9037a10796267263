package operator_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/integration/harness"
)

// TestRoutesComeAndGo installs and deletes types of routes while the operator runs.
func TestRoutesComeAndGo(t *testing.T) {
	install(t, "workloads", "environments", "releases")
	s := newFixture(t)
	s.environment("here", "north")
	s.run()
	s.create(s.workload("web", "here"))
	s.awaitCondition("web", "Routed", metav1.ConditionFalse)
	for range 2 {
		t.Run("routes", func(t *testing.T) {
			install(t, "routes")
			route := s.route("Route", "web", "www.example.com", "web")
			s.create(route)
			s.awaitHosts("web", "www.example.com")
			t.Run("of another kind", func(t *testing.T) {
				harness.InstallCRDs(t, harness.NewCRD("demo.crdcache.dev", "TCPRoute"))
				s.create(s.route("TCPRoute", "web", "tcp.example.com", "web"))
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
	s.run()
	install(t, "workloads", "environments", "releases")
	s.environment("here", "north")
	s.create(s.workload("web", "here"))
	s.awaitCondition("web", "Ready", metav1.ConditionTrue)
}
