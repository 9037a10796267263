package readapi_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/integration/harness"
	"github.com/crdcache/crdcache/test/integration/internal/answers"
	"github.com/crdcache/crdcache/test/testcluster"
)

var kubectlCommands = []string{
	"get workloads -A", "get wl -n payments", "get wl,env,routes -A -o name", "get env -o wide",
	"get workloads -A -o wide --show-labels",
	"get workloads -A -o json", "get releases -A -o yaml", "get env production-eu",
	"get env production-eu -o yaml", "get delivery -n payments",
	"get wl -A -l demo.crdcache.dev/team=cards", "get wl -A --field-selector spec.tier=critical",
	"get wl -A --field-selector status.phase=Running,metadata.namespace=edge",
	"get wl -n attic", "get wl -A --chunk-size=3", "get wl -A --sort-by=.spec.replicas",
	"get wl -A -o jsonpath={.items[*].spec.image}",
	"get wl -A -o custom-columns=N:.metadata.name,T:.spec.tier", "get routes.v1beta1.demo.crdcache.dev -A",
	"get wl -A --no-headers --show-kind",
	"get wl -n edge -L demo.crdcache.dev/team", "get namespaces -o json",
	"get crd environments.demo.crdcache.dev -o yaml", "get --raw /apis/demo.crdcache.dev",
	"describe env production-eu", "describe wl -n edge", "describe routes -n storefront",
	"explain workloads.spec.strategy.canary", "explain workloads.status",
	"explain routes.spec --api-version=demo.crdcache.dev/v1beta1", "explain env.spec --recursive",
	"api-resources --api-group=demo.crdcache.dev",
	"api-resources --api-group=demo.crdcache.dev --namespaced=false -o name",
	"wait --for=jsonpath={.status.phase}=Running wl/dns -n edge --timeout=20s",
	"get wl -A --server-print=false", "get wl dns search -n edge --ignore-not-found",
	"get wl -A --chunk-size=1 -o name", "get wl -A -o json --chunk-size=2", "get env,wl -A",
	"get wl -A -l demo.crdcache.dev/team=shop -o json --chunk-size=1", "get wl -n payments -o json --chunk-size=2",
	"get platform -A", "get wl -n edge -o yaml --show-managed-fields",
	"get wl dns -n edge --subresource=status",
	"get wl -n edge -w --request-timeout=2s", "get wl -n edge --watch-only --request-timeout=2s",
	"get wl -A -w --request-timeout=2s -l demo.crdcache.dev/team=cards",
	"get wl dns -n edge -w -o name --request-timeout=2s",
	"wait --for=delete wl/none -n edge --timeout=2s",
	"wait --for=condition=Ready env/production-eu --timeout=2s", "api-resources --api-group=nope",
	// Commands that fail with equal messages.
	"get nope", "get wl none -n edge", "get wl/dns env/none -n edge",
	"get wl -n edge --field-selector=spec.image=x", "get wl -l a=b=c",
	"get --raw /apis/demo.crdcache.dev/v1/nope", "describe wl none -n edge", "explain nope",
	"explain wl.nope",
	"wait --for=jsonpath={.status.phase}=Never wl/dns -n edge --timeout=2s",
}

// TestKubectl compares the output of kubectl, except ages, and its exit codes.
func TestKubectl(t *testing.T) { runKubectl(t, newPair(t), kubectlCommands) }

// TestKubectlWithACache runs further commands on a cache of the real API server, including ones that an
// in-memory cluster cannot answer.
func TestKubectlWithACache(t *testing.T) {
	runKubectl(t, newCachePair(t), []string{
		"get wl,env,routes -A -o name", "get ns", "get ns -o json",
		"api-resources --api-group=demo.crdcache.dev",
		"get wl -n edge -w --request-timeout=2s", "get ns edge -w -o name --request-timeout=2s",
		"get serviceaccounts -n edge -o name",
		"get clusterroles view -o yaml", "version",
	})
}

func runKubectl(t *testing.T, p *serverPair, commands []string) {
	for _, command := range commands {
		t.Run(command, func(t *testing.T) {
			t.Parallel() // some commands wait for seconds
			diff := ""
			for try := 0; try == 0 || diff != "" && try < 6 && strings.Contains(command, "timeout=2s"); try++ {
				longer := fmt.Sprintf("timeout=%ds", 2<<try) // a busy machine may need more than two seconds
				args := strings.Fields(strings.ReplaceAll(command, "timeout=2s", longer))
				real, ours := startKubectl(t, args...), startKubectl(t,
					append([]string{"--server", p.crdcache.Host}, args...)...)
				diff = cmp.Diff(real(), ours(), cmp.AllowUnexported(outcome{}))
			}
			if diff != "" {
				t.Errorf("output of kubectl (-API server +crdcache):\n%s", diff)
			}
		})
	}
}

// outcome is the result of a run of kubectl.
type outcome struct {
	stdout, stderr string // without ages
	code           int
}

// startKubectl runs kubectl without a discovery cache. wait returns its result.
func startKubectl(t *testing.T, args ...string) (wait func() outcome) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), harness.KubectlPath(t), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+harness.Kubeconfig(t), "KUBECACHEDIR="+t.TempDir())
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	must(t, cmd.Start())
	return func() outcome {
		_ = cmd.Wait() // the exit code is the result
		return outcome{withoutAges(stdout.String()), withoutAges(stderr.String()),
			cmd.ProcessState.ExitCode()}
	}
}

var (
	agePattern = regexp.MustCompile(`\b(\d+[ydhms])+\b`)
	gapPattern = regexp.MustCompile(` +`)
)

// withoutAges removes ages, because the texts were printed at different times.
func withoutAges(text string) string {
	return gapPattern.ReplaceAllString(agePattern.ReplaceAllString(text, "AGE"), " ")
}

// TestAnswers compares the answers of an in-memory cluster with a real API server's. TestAnswers in
// test/integration/crdcached compares crdcached's answers.
func TestAnswers(t *testing.T) {
	p := newPair(t)
	for _, suite := range answers.Suites() {
		t.Run(suite.Name, func(t *testing.T) {
			answers.Compare(t, p.apiServer, answers.Server{Name: "storage", Config: p.crdcache}, suite.Questions)
		})
	}
}

// missingTypePrefixes has prefixes of the built-in types that an in-memory cluster lacks: types that are not
// stored, and versions with other fields than the stored version.
var missingTypePrefixes = []string{
	"v1/bindings", "v1/componentstatuses", "authentication.k8s.io/", "authorization.k8s.io/",
	"autoscaling/v1/",
}

// TestBuiltInTypes compares the built-in types of an in-memory cluster with those of a real API server, in
// both forms of discovery.
func TestBuiltInTypes(t *testing.T) {
	harness.Require(t, harness.Since("1.37")) // testcluster behaves like 1.37
	cluster, err := testcluster.New(t.Context(), testcluster.Options{})
	must(t, err)
	real := discovery.NewDiscoveryClientForConfigOrDie(harness.Config(t))
	ours := discovery.NewDiscoveryClientForConfigOrDie(cluster.Config())
	if diff := cmp.Diff(typesOf(t, real), typesOf(t, ours)); diff != "" {
		t.Errorf("aggregated discovery (-real +ours):\n%s", diff)
	}
	if diff := cmp.Diff(typesOf(t, real.WithLegacy()), typesOf(t, ours.WithLegacy())); diff != "" {
		t.Errorf("legacy discovery (-real +ours):\n%s", diff)
	}
}

// typesOf returns all types in discovery, and their status subresources, by group, version and name.
func typesOf(t *testing.T, client discovery.DiscoveryInterface) map[string]metav1.APIResource {
	t.Helper()
	_, lists, err := client.ServerGroupsAndResources()
	must(t, err)
	all := map[string]metav1.APIResource{}
	for _, list := range lists {
		for _, r := range list.APIResources {
			name := list.GroupVersion + "/" + r.Name
			sub := strings.Contains(r.Name, "/")
			if slices.ContainsFunc(missingTypePrefixes, func(prefix string) bool {
				return strings.HasPrefix(name, prefix)
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

// newCachePair is newPair with a cache of the real API server instead of an in-memory cluster.
func newCachePair(t *testing.T) *serverPair {
	t.Helper()
	loadManifests(t)
	config := harness.Config(t)
	gvrs := []schema.GroupVersionResource{crd.GVR, {Version: "v1", Resource: "namespaces"}}
	for _, plural := range plurals {
		gvrs = append(gvrs, schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural})
	}
	server, err := harness.StartCacheServer(config, gvrs...)
	must(t, err)
	listener := httptest.NewServer(server)
	t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	must(t, server.WaitForSync(t.Context()))
	return &serverPair{apiServer: config, crdcache: &rest.Config{Host: listener.URL, QPS: -1}}
}

const (
	testdata = "../../../testdata/"
	group    = answers.Group
)

var plurals = []string{"environments", "releases", "routes", "workloads"}

// serverPair is a real API server and a readapi server with the same objects.
type serverPair struct {
	apiServer, crdcache *rest.Config
	storage             *apiserver.Storage
}

// loadManifests loads the manifests in testdata into the real API server. Its version must match the one of
// readapi.
func loadManifests(t *testing.T) {
	t.Helper()
	harness.Require(t, harness.WatchList, harness.SelectableFields, harness.ErrorWording)
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"objects")...)
}

// newPair loads the project's manifests into both servers.
func newPair(t *testing.T) *serverPair {
	t.Helper()
	loadManifests(t)
	p := &serverPair{apiServer: harness.Config(t), storage: apiserver.NewStorage(apiserver.StorageOptions{})}
	err := p.storage.SetType(readapi.Type{
		Names:    crd.Names{Plural: "namespaces", Kind: "Namespace", ShortNames: []string{"ns"}},
		Versions: []readapi.Version{{Name: "v1"}},
	})
	must(t, err)
	p.copyObjects(t, crd.GVR)
	p.copyObjects(t, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for _, plural := range plurals {
		p.copyObjects(t, schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural})
	}
	server := httptest.NewServer(readapi.NewHandler(p.storage, readapi.HandlerOptions{}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	p.crdcache = &rest.Config{Host: server.URL, QPS: -1}
	return p
}

// copyObjects copies all objects of a type to the readapi server.
func (p *serverPair) copyObjects(t *testing.T, gvr schema.GroupVersionResource) {
	t.Helper()
	client, err := dynamic.NewForConfig(p.apiServer)
	must(t, err)
	list, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for i := range list.Items {
		if _, err := p.storage.Restore(&list.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
}
