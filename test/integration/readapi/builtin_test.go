package readapi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/test/integration/harness"
	"github.com/crdcache/crdcache/test/testcluster"
)

// missingTypePrefixes has prefixes of the built-in types that an in-memory cluster lacks: types that are not
// stored, and versions with other fields than the stored version.
var missingTypePrefixes = []string{
	"v1/bindings", "v1/componentstatuses", "authentication.k8s.io/", "authorization.k8s.io/",
	"autoscaling/v1/",
}

// TestBuiltInTypes compares the built-in types of an in-memory cluster and a real API server.
func TestBuiltInTypes(t *testing.T) {
	harness.Require(t, harness.Since("1.37")) // testcluster behaves like 1.37
	cluster, err := testcluster.New(t.Context(), testcluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(typesOf(t, harness.Config(t)), typesOf(t, cluster.Config())); diff != "" {
		t.Errorf("(-real +ours):\n%s", diff)
	}
}

// typesOf returns all types in discovery, and their status subresources, by group, version and name.
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
			if slices.ContainsFunc(missingTypePrefixes, func(prefix string) bool {
				return strings.HasPrefix(name,
					prefix)
			}) || sub && !strings.HasSuffix(name, "/status") {
				continue
			}
			if r.StorageVersionHash = ""; name == "v1/namespaces" {
				r.Verbs = nil // a kube-apiserver cannot delete collections of them
			}
			r.Group, r.Version = "", "" // both are in the name
			slices.Sort(r.Verbs)
			all[name] = r
		}
	}
	return all
}
