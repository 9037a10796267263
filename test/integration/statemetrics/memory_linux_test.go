package statemetrics

import (
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/test/integration/harness"
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

// TestMemory compares the memory of both programs, with equal series.
func TestMemory(t *testing.T) {
	requireProgram(t)
	objects := []runtime.Object{decode(t, certificateDefinition)[0]}
	for n := range *objectCount {
		objects = append(objects, certificate(n))
	}
	cluster, err := testcluster.New(t.Context(), testcluster.Options{Objects: objects, WithoutBuiltIns: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(cluster)
	t.Cleanup(server.Close) // after the programs ended
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "certificates"}
	list, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var versions []string
	for _, o := range list.Items {
		versions = append(versions, o.GetResourceVersion())
	}
	slices.Sort(versions)
	kubeconfig := harness.WriteKubeconfig(t, &rest.Config{Host: server.URL})
	config := awaitable(t, resourcesOf(t, certificateConfig))
	counts := map[string]int{}
	for name, start := range map[string]func(*testing.T, string, string) exporter{
		"kube-state-metrics": startKubeStateMetrics, "crdcache": startCrdcache} {
		e := start(t, kubeconfig, config)
		counts[name] = len(e.await(t, versions))
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", e.process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		kilobytes, err := strconv.Atoi(string(regexp.MustCompile(`VmHWM:\s+(\d+)`).FindSubmatch(status)[1]))
		t.Logf("%-18s %d series, peak %d MiB (%v)", name, counts[name], kilobytes>>10, err)
	}
	if counts["crdcache"] != counts["kube-state-metrics"] || counts["crdcache"] < *objectCount {
		t.Errorf("the exporters have these numbers of series: %v, want equal ones", counts)
	}
}
