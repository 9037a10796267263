package main

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/test/testcluster"
)

// TestQueries runs the queries of the README.
func TestQueries(t *testing.T) {
	cluster, err := testcluster.New(t.Context(), testcluster.Options{
		Paths: []string{"../../testdata/crds", "../../testdata/objects"}})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err = run(t.Context(), cluster.Config(), "../../testdata/indexes/platform.yaml",
		strings.NewReader("workloads condition=Ready/False\nenvironments stage=production\nworkloads color=red\n"), &out)
	if err != nil {
		t.Fatal(err)
	}
	const want = `environments: 6 objects of environments.demo.crdcache.dev
releases: 13 objects of releases.demo.crdcache.dev
routes: 10 objects of routes.demo.crdcache.dev
workloads: 18 objects of workloads.demo.crdcache.dev
workloads condition=Ready/False: payments/card-gateway payments/fraud-model edge/proxy
environments stage=production: production-ap production-eu production-us
query:1: there is no index "color"; there are condition, env-value, environment, image-host, namespace, not-ready, owner, paused, port, scrape, team, tier-per-namespace
`
	if out.String() != want {
		t.Errorf("printed\n%s, want\n%s", out.String(), want)
	}
}
