package statemetrics

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	metricsstore "k8s.io/kube-state-metrics/v2/pkg/metrics_store"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/test/testcluster"
)

var objectCount = flag.Int("objects", 5000, "number of objects of the comparison of memory")

const certificateDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: certificates, kind: Certificate}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

// certificate returns an object with the size of a cert-manager Certificate, including managedFields.
func certificate(n int) *unstructured.Unstructured {
	var managed []any
	for _, manager := range []string{"cert-manager-certificates-trigger", "cert-manager-certificates-issuing", "argocd-controller"} {
		managed = append(managed, map[string]any{"manager": manager, "operation": "Update", "apiVersion": "example.com/v1",
			"fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{"f:dnsNames": map[string]any{},
				"f:issuerRef": map[string]any{"f:group": map[string]any{}, "f:kind": map[string]any{}, "f:name": map[string]any{}}},
				"f:status": map[string]any{"f:conditions": map[string]any{}, "f:notAfter": map[string]any{}, "f:revision": map[string]any{}}}})
	}
	status := map[bool]string{true: "True", false: "False"}
	name := fmt.Sprintf("certificate-%06d", n)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Certificate",
		"metadata": map[string]any{"name": name, "namespace": fmt.Sprintf("team-%d", n%50), "managedFields": managed,
			"labels":      map[string]any{"app.kubernetes.io/name": name, "team": fmt.Sprintf("team-%d", n%50)},
			"annotations": map[string]any{"example.com/description": fmt.Sprintf("The certificate %d of a service with a description that people wrote.", n)}},
		"spec": map[string]any{"secretName": name + "-tls", "dnsNames": []any{name + ".example.com", name + ".svc"},
			"issuerRef": map[string]any{"group": "example.com", "kind": "ClusterIssuer", "name": fmt.Sprintf("issuer-%d", n%7)}},
		"status": map[string]any{"notAfter": time.Unix(1_790_000_000+int64(n%90)*86400, 0).UTC().Format(time.RFC3339),
			"revision": int64(n % 9), "conditions": []any{
				map[string]any{"type": "Ready", "status": status[n%20 > 0], "reason": "Ready", "lastTransitionTime": "2026-01-01T00:00:00Z", "message": "Certificate is up to date and has not expired"},
				map[string]any{"type": "Issuing", "status": status[n%20 == 0], "reason": "Issuing", "lastTransitionTime": "2026-01-01T00:00:00Z"}}},
	}}
}

// certificateConfig has the metrics that users of cert-manager export, with a series for each object.
const certificateConfig = `
kind: CustomResourceStateMetrics
spec:
  resources:
  - groupVersionKind: {group: example.com, version: v1, kind: Certificate}
    metricNamePrefix: certificate
    labelsFromPath: {name: [metadata, name], namespace: [metadata, namespace]}
    metrics:
    - {name: condition, help: Conditions., each: {type: Gauge, gauge: {path: [status, conditions], valueFrom: [status], labelsFromPath: {type: [type]}}}}
    - {name: expires_seconds, help: Expiry., each: {type: Gauge, gauge: {path: [status, notAfter]}}}
    - {name: revision, help: Revision., each: {type: Gauge, gauge: {path: [status, revision]}}}
    - {name: info, help: Issuer., each: {type: Info, info: {labelsFromPath: {issuer: [spec, issuerRef, name], issuer_kind: [spec, issuerRef, kind]}}}}
    - {name: ready, help: Ready., each: {type: StateSet, stateSet: {path: [status, conditions, "[type=Ready]", status], labelName: status, list: ["True", "False", Unknown]}}}
`

// usage is the memory of an exporter in bytes.
type usage struct {
	// Heap is the live heap, Peak the largest resident memory.
	Heap, Peak uint64
	// Series is the number of series of a scrape, and Scrape its duration.
	Series int
	Scrape time.Duration
}

// exporters start to export the metrics of a server, and return a scrape after the initial list.
var exporters = map[string]func(t *testing.T, server *rest.Config, config string) (scrape func() int){
	"kube-state-metrics": func(t *testing.T, server *rest.Config, config string) func() int {
		client, err := dynamic.NewForConfig(server)
		if err != nil {
			t.Fatal(err)
		}
		s := newStores(t, config)[0]
		gvr := s.kind.GroupVersion().WithResource("certificates")
		lists := &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (apiruntime.Object, error) {
				return client.Resource(gvr).List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return client.Resource(gvr).Watch(ctx, o)
			},
		}
		reflector := cache.NewReflector(lists, &unstructured.Unstructured{}, s.MetricsStore, 0)
		go reflector.RunWithContext(t.Context()) // ended by the test
		for reflector.LastSyncResourceVersion() == "" && t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		return func() int {
			var lines lineCounter
			if err := metricsstore.NewMetricsWriter("", s.MetricsStore).WriteAll(&lines); err != nil {
				t.Error(err)
			}
			return lines.series
		}
	},
	"crdcache": func(t *testing.T, server *rest.Config, config string) func() int {
		parsed, err := indexers.Parse(indexers.Source{Name: "converted.yaml", Data: []byte(config)})
		if err != nil {
			t.Fatal(err)
		}
		client, err := discovery.NewClient(server, discovery.Options{})
		if err != nil {
			t.Fatal(err)
		}
		catalog, err := client.Catalog(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		factory, err := dynamicinformer.New(dynamicinformer.Options{Config: server})
		if err != nil {
			t.Fatal(err)
		}
		binding, err := bind.New(factory, parsed, bind.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := binding.Resolve(catalog); err != nil {
			t.Fatal(err)
		}
		if err := factory.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := factory.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		return func() int {
			var lines lineCounter
			for f := range indexers.ReadMetrics(binding.MetricSources()...) {
				for _, s := range f.Series {
					if f.Name[:4] != "crdc" {
						fmt.Fprintf(&lines, "%s%v %v\n", f.Name, s.Labels, s.Value)
					}
				}
			}
			return lines.series
		}
	},
}

// lineCounter counts the series in a text.
type lineCounter struct{ series int }

var seriesLine = regexp.MustCompile(`(?m)^[^#\n]+$`)

func (c *lineCounter) Write(text []byte) (int, error) {
	c.series += len(seriesLine.FindAllIndex(text, -1))
	return len(text), nil
}

const exporterVariable = "STATEMETRICS_EXPORTER"

// TestExporter is the process of an exporter in TestMemory. It does nothing otherwise.
func TestExporter(t *testing.T) {
	name := os.Getenv(exporterVariable)
	if name == "" {
		return
	}
	scrape := exporters[name](t, &rest.Config{Host: os.Getenv("SERVER"), QPS: -1}, os.Getenv("CONFIG"))
	var u usage
	for range 3 {
		start := time.Now()
		u.Series = scrape()
		u.Scrape = time.Since(start)
	}
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	u.Heap = stats.HeapAlloc
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	kilobytes, _ := strconv.ParseUint(regexp.MustCompile(`VmHWM:\s+(\d+)`).FindStringSubmatch(string(status))[1], 10, 64)
	u.Peak = kilobytes << 10
	text, _ := json.Marshal(u)
	fmt.Printf("usage: %s\n", text)
	runtime.KeepAlive(scrape)
}

// TestMemory compares the memory of both exporters, each in its own process, with equal series.
func TestMemory(t *testing.T) {
	objects := []apiruntime.Object{decode(t, certificateDefinition)[0]}
	for n := range *objectCount {
		objects = append(objects, certificate(n))
	}
	cluster, err := testcluster.New(t.Context(), testcluster.Options{Objects: objects, WithoutBuiltIns: true})
	if err != nil {
		t.Fatal(err)
	}
	objects = nil
	server := httptest.NewServer(cluster)
	defer server.Close()
	defer server.CloseClientConnections()
	file := t.TempDir() + "/config.yaml"
	if err := os.WriteFile(file, []byte(certificateConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	configs := map[string]string{"kube-state-metrics": certificateConfig,
		"crdcache": run(t, buildCrdcache(t), "import", "kube-state-metrics", file)}
	var usages []usage
	for name, config := range configs {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestExporter$", "-test.v")
		command.Env = append(os.Environ(), exporterVariable+"="+name, "SERVER="+server.URL, "CONFIG="+config)
		command.Stderr = io.Discard
		out, err := command.Output()
		found := regexp.MustCompile(`usage: (.*)\n`).FindSubmatch(out)
		if err != nil || found == nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		var u usage
		if err := json.Unmarshal(found[1], &u); err != nil {
			t.Fatal(err)
		}
		usages = append(usages, u)
		t.Logf("%-18s %d series, heap %.1f MiB, peak %.1f MiB, scrape %v", name, u.Series, float64(u.Heap)/(1<<20),
			float64(u.Peak)/(1<<20), u.Scrape.Round(time.Millisecond))
	}
	if usages[0].Series != usages[1].Series || usages[0].Series < *objectCount {
		t.Errorf("the exporters have %d and %d series, want equal numbers", usages[0].Series, usages[1].Series)
	}
}
