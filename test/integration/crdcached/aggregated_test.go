package crdcached_test

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestAggregatedServer reads from crdcached through the API server, which has an APIService.
func TestAggregatedServer(t *testing.T) {
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"objects")...)
	server := harness.StartCrdcached(t, "indexConfigs: ['"+testdata+"indexes/platform.yaml']")
	address, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(address.Port())
	if err != nil {
		t.Fatal(err)
	}
	harness.RegisterAPIService(t, schema.GroupVersion{Group: "cache.crdcache.dev", Version: "v1"}, port)
	harness.Apply(t, ofKind(buildManifests(t, "example"), "ClusterRole", "ClusterRoleBinding")...)

	user := harness.NewUser(t, "aggregated")
	user.Grant(t, "payments", newPolicyRule("get,list,watch", "workloads"))
	config := user.Config(t)
	config.Host += "/apis/cache.crdcache.dev/v1/proxy"
	counts := &requestCounts{counts: map[string]int{}}
	counted := rest.CopyConfig(config)
	counted.Wrap(counts.wrap)
	workloads := dynamic.NewForConfigOrDie(counted).Resource(schema.GroupVersionResource{Group: group,
		Version: "v1", Resource: "workloads"})
	harness.Eventually(t, func(ctx context.Context) error {
		_, err := workloads.Namespace("payments").List(ctx, metav1.ListOptions{})
		return err
	})
	if counts.counts["200 cache "] == 0 {
		t.Errorf("code and server of the responses are %v, want 200 and cache", counts.counts)
	}
	for name, err := range map[string]error{
		"another namespace": errorOf(workloads.Namespace("storefront").List(t.Context(), metav1.ListOptions{})),
		"all namespaces":    errorOf(workloads.List(t.Context(), metav1.ListOptions{})),
		"a write":           workloads.Namespace("payments").Delete(t.Context(), "ledger", metav1.DeleteOptions{}),
	} {
		if !apierrors.IsForbidden(err) && !apierrors.IsMethodNotSupported(err) {
			t.Errorf("%s returns %v, want a refusal", name, err)
		}
	}
	spoofed := rest.CopyConfig(config)
	spoofed.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("X-Remote-User", "admin")
			r.Header.Set("X-Remote-Group", "system:masters")
			return next.RoundTrip(r)
		})
	})
	_, err = dynamic.NewForConfigOrDie(spoofed).Resource(crd.GVR).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a list with the headers of a proxy returns %v, want Forbidden", err)
	}

	kubeconfig := harness.WriteKubeconfig(t, config)
	kubectl := func(args ...string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), harness.KubectlPath(t), args...)
		c.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+t.TempDir())
		return c
	}
	out, err := kubectl("get", "wl", "-n", "payments").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "card-gateway") {
		t.Errorf("kubectl get prints\n%s%v, want a table with card-gateway", out, err)
	}
	followWorkloads(t, kubectl("get", "workloads", "--output-watch-events", "--watch", "-n", "payments", "-o",
		`jsonpath={.type} {.object.metadata.namespace}/{.object.metadata.name}{"\n"}`))

	// The API server merges the documents of aggregated servers. Those of crdcached must be empty.
	client := discovery.NewDiscoveryClientForConfigOrDie(harness.Config(t))
	resources, err := client.ServerResourcesForGroupVersion("cache.crdcache.dev/v1")
	if err != nil || len(resources.APIResources) > 0 {
		t.Errorf("the API server discovers %v, %v in the group, want no resources", resources, err)
	}
}

func errorOf[T any](_ T, err error) error { return err }
