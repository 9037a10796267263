package web

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// TestClusterPages checks that each cluster has its own page, and that the first cluster also has the paths
// without a cluster.
func TestClusterPages(t *testing.T) {
	config := &rest.Config{Host: "http://127.0.0.1:1"}
	tracker, err := discovery.NewTracker(config, discovery.TrackerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	otherFactory, err := dynamicinformer.New(dynamicinformer.Options{Config: config, Types: tracker.Types()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = otherFactory.Close() })
	s := newFixture(t, Options{Clusters: []Source{{Title: "arn:eks/other", Factory: otherFactory}}})
	const workload = "api/type?type=workloads.demo.crdcache.dev/v1"
	for _, prefix := range []string{"/", "/clusters/memory/"} {
		if got := s.get(prefix+workload, http.StatusOK); !strings.Contains(got, "Workload") {
			t.Errorf("the type below %s is %s", prefix, got)
		}
	}
	const clusterPath = "/clusters/arn:eks%2Fother/"
	if got := s.get(clusterPath, http.StatusOK); !strings.Contains(got, `src="scripts/main.js"`) {
		t.Errorf("the page of the other cluster is %s", got)
	}
	s.get(clusterPath+workload, http.StatusNotFound)
	s.get("/clusters/none/", http.StatusNotFound)
	stream := s.openStream()
	choices := func(problem string) func(string) bool {
		return func(data string) bool {
			return strings.Contains(data,
				`"title":"memory","clusters":[{"title":"memory"},{"title":"arn:eks/other"`+problem)
		}
	}
	awaitEvent(t, stream, "types", choices("}]"))
	var tracked sync.WaitGroup
	t.Cleanup(tracked.Wait)
	tracked.Go(func() { _ = tracker.Run(t.Context()) }) // ended by the context
	awaitEvent(t, stream, "types", choices(`,"problem":{"type":"Reachable","status":"False","reason":"Unreachable"`))
	s.client = http.DefaultClient
	s.get(clusterPath, http.StatusUnauthorized) // the link admits to all clusters
	if _, err := NewHandler(Source{Title: "a", Factory: otherFactory},
		Options{Clusters: []Source{{Title: "a", Factory: otherFactory}}}); err == nil {
		t.Error("NewHandler with two clusters of one title succeeded, want an error")
	}
}
