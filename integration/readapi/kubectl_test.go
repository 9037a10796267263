package readapi_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/integration/harness"
)

func decode(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

var commands = []string{
	"get workloads -A", "get wl -n payments", "get wl,env,routes -A -o name", "get env -o wide", "get workloads -A -o wide --show-labels",
	"get workloads -A -o json", "get releases -A -o yaml", "get env production-eu", "get env production-eu -o yaml", "get delivery -n payments",
	"get wl -A -l demo.crdcache.dev/team=cards", "get wl -A --field-selector spec.tier=critical", "get wl -A --field-selector status.phase=Running,metadata.namespace=edge",
	"get wl -n attic", "get wl -A --chunk-size=3", "get wl -A --sort-by=.spec.replicas", "get wl -A -o jsonpath={.items[*].spec.image}",
	"get wl -A -o custom-columns=N:.metadata.name,T:.spec.tier", "get routes.v1beta1.demo.crdcache.dev -A", "get wl -A --no-headers --show-kind",
	"get wl -n edge -L demo.crdcache.dev/team", "get namespaces -o json", "get crd environments.demo.crdcache.dev -o yaml", "get --raw /apis/demo.crdcache.dev",
	"describe env production-eu", "describe wl -n edge", "describe routes -n storefront",
	"explain workloads.spec.strategy.canary", "explain workloads.status", "explain routes.spec --api-version=demo.crdcache.dev/v1beta1", "explain env.spec --recursive",
	"api-resources --api-group=demo.crdcache.dev", "api-resources --api-group=demo.crdcache.dev --namespaced=false -o name",
	"wait --for=jsonpath={.status.phase}=Running wl/dns -n edge --timeout=20s",
	"get wl -A --server-print=false", "get wl dns search -n edge --ignore-not-found",
}

// TestKubectl compares what kubectl prints, but for ages.
func TestKubectl(t *testing.T) {
	p := newPair(t)
	for _, command := range commands {
		t.Run(command, func(t *testing.T) {
			args := strings.Fields(command)
			want := harness.Kubectl(t, args...)
			got := harness.Kubectl(t, append([]string{"--server", p.ours.Host}, args...)...)
			if diff := cmp.Diff(ageless(want), ageless(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

var (
	agePattern = regexp.MustCompile(`\b(\d+[ydhms])+\b`)
	gapPattern = regexp.MustCompile(` +`)
)

// ageless makes texts comparable that were printed at different times.
func ageless(text string) string {
	return gapPattern.ReplaceAllString(agePattern.ReplaceAllString(text, "AGE"), " ")
}
