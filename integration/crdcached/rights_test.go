package crdcached_test

import (
	"net/http"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/crdcache/crdcache/integration/crdcached/running"
	"github.com/crdcache/crdcache/integration/harness"
)

const (
	testdata = "../../testdata/"
	group    = "demo.crdcache.dev"
	demo     = "/apis/" + group + "/v1"
)

// TestAnswers: whoever asks, and whatever for, gets what the API server answers.
func TestAnswers(t *testing.T) {
	harness.Needs(t, harness.WatchList, harness.SelectableFields, harness.Wording)
	harness.InstallCRDs(t, harness.Read(t, testdata+"crds")...)
	harness.Apply(t, harness.Read(t, testdata+"objects")...)
	s := running.Start(t, `types: ["*.demo.crdcache.dev", namespaces, configmaps]`)
	reader := running.NewUser(t, "reader")
	reader.Grant(t, "", rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"workloads", "environments"}, Verbs: []string{"get", "list", "watch"}})
	real := reader.Config(t)
	ours := s.As(real)
	for _, path := range []string{
		demo + "/workloads", demo + "/namespaces/payments/workloads", demo + "/routes", demo + "/environments?limit=1",
	} {
		a, b := ask(t, real, http.MethodGet, path), ask(t, ours, http.MethodGet, path)
		if a.code != b.code || a.body != b.body {
			t.Errorf("%s: %d and %d\n%.600s\n%.600s", path, a.code, b.code, a.body, b.body)
		}
		t.Log(path, a.code, b.header)
	}
}
