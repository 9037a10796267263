package readapi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/readapi/testcluster"
)

// leftOut are built-in types that a cluster in memory does not have: those that are asked instead of kept,
// and versions that differ by more than their name from the one that is there.
var leftOut = []string{
	"v1/bindings", "v1/componentstatuses", "authentication.k8s.io/", "authorization.k8s.io/",
	"autoscaling/v1/",
}

// TestBuiltInTypes compares the built-in types with those of a real server.
func TestBuiltInTypes(t *testing.T) {
	harness.Needs(t, harness.Since("1.37")) // which testcluster is like
	cluster, err := testcluster.New(t.Context(), testcluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(typesOf(t, harness.Config(t)), typesOf(t, cluster.Config())); diff != "" {
		t.Errorf("(-real +ours):\n%s", diff)
	}
}

// typesOf returns what discovery says of all types and their status.
func typesOf(t *testing.T, config *rest.Config) map[string]metav1.APIResource {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]metav1.APIResource{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			name := list.GroupVersion + "/" + r.Name
			sub := strings.Contains(r.Name, "/")
			if slices.ContainsFunc(leftOut, func(prefix string) bool {
				return strings.HasPrefix(name,
					prefix)
			}) || sub && !strings.HasSuffix(name, "/status") {
				continue
			}
			if r.StorageVersionHash = ""; name == "v1/namespaces" {
				r.Verbs = nil // a kube-apiserver deletes no collections of them
			}
			r.Group, r.Version = "", "" // which are in the name
			slices.Sort(r.Verbs)
			all[name] = r
		}
	}
	return all
}
