package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/test/integration/harness"
	"github.com/google/go-cmp/cmp"
)

// testdata is the folder of the project's own definitions and objects.
const testdata = "../../../testdata/"

// TestSameAsKubectl compares tables and JSON for every type, and every output format for one type.
func TestSameAsKubectl(t *testing.T) {
	namespaces := installCertManager(t)
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"objects")...)
	for name, ns := range map[string]string{ // with the namespace to list
		"certificates.cert-manager.io":      namespaces[0],
		"issuers.cert-manager.io":           namespaces[0], // no objects
		"clusterissuers.v1.cert-manager.io": "default",     // no objects
		"environments.demo.crdcache.dev":    "payments",    // cluster-scoped
		"workloads.demo.crdcache.dev":       "payments",
		"workloads.v1.demo.crdcache.dev":    "media",
		"routes.demo.crdcache.dev":          "storefront",
		"releases.demo.crdcache.dev":        "attic", // empty namespace
	} {
		t.Run(name, func(t *testing.T) {
			testTables(t, name, []string{"-n", ns})
		})
	}
	t.Run("every format", func(t *testing.T) {
		testTables(t, "workloads", []string{"-A"})
		testLists(t, "workloads", []string{"-A"})
		testLists(t, "releases", []string{"-n", "attic"})
	})
	t.Run("the namespace of the context", func(t *testing.T) { testLists(t, "configmaps", nil) })
	// With types of both scopes, kubectl prints empty columns.
	for _, scope := range []string{"--namespaced=true", "--namespaced=false"} {
		t.Run("every type of the server "+scope, func(t *testing.T) {
			names := strings.Fields(harness.Kubectl(t, "api-resources", "--verbs=list,watch", "-o", "name", scope))
			names = slices.DeleteFunc(names, func(name string) bool {
				return name == "endpoints" || name == "events" // cause warnings: one is deprecated, the other ambiguous
			})
			if len(names) < 20 {
				t.Fatalf("the server has only the types %q", names)
			}
			all := strings.Join(names, ",")
			expectSameTable(t, all, "-A", "-o", "wide")
			want, got, after := "", "", "none"
			for want != after { // the server renews its Lease
				args := []string{"get", all, "-A", "-o", "json"}
				want, got = harness.Kubectl(t, args...), mustDump(t, args[1:]...)
				after = harness.Kubectl(t, args...)
			}
			expectSame(t, "output", want, got)
		})
	}
	t.Run("built-in types", func(t *testing.T) {
		for _, name := range []string{"namespaces", "services", "priorityclasses", "flowschemas"} {
			testTables(t, name, []string{"-A"})
		}
		testLists(t, "clusterroles", []string{"-A"})
	})
	t.Run("selectors", func(t *testing.T) {
		for _, args := range [][]string{
			{"namespaces", "-l", "kubernetes.io/metadata.name in (default,kube-system)"},
			{"namespaces", "--field-selector", "metadata.name=default"},
			{"workloads", "-A", "-l", "!demo.crdcache.dev/team"},
		} {
			expectSameTable(t, args...)
		}
	})
	t.Run("other formats", func(t *testing.T) {
		for _, format := range []string{
			"custom-columns=NAME:.metadata.name,LABELS:metadata.labels,NONE:{.spec.nope}",
			"jsonpath={.items[*].metadata.name}",
			"jsonpath-as-json={.items[*].spec}", "go-template={{range .items}}{{.metadata.name}} {{end}}",
		} {
			args := []string{"workloads", "-A", "-o", format}
			expectSame(t, format, harness.Kubectl(t, append([]string{"get"}, args...)...),
				mustDump(t, args...))
		}
	})
	t.Run("API", testSameAsAPI)
	t.Run("names", testNames)
	t.Run("category", testCategory)
	t.Run("several types", testSeveralTypes)
	t.Run("deprecated version", testDeprecatedVersion)
	t.Run("managedFields", func(t *testing.T) {
		args := []string{"releases", "-A", "-o", "json", "--show-managed-fields"}
		expectSame(t, "output", harness.Kubectl(t, append([]string{"get"}, args...)...), mustDump(t, args...))
	})
	t.Run("no headers", func(t *testing.T) {
		expectSameTable(t, "releases", "-A", "--no-headers")
	})
}

func testLists(t *testing.T, name string, scope []string) {
	for _, format := range []string{"json", "yaml", "name"} {
		t.Run(name+" "+format, func(t *testing.T) {
			args := append([]string{name, "-o", format}, scope...)
			expectSame(t, "output", harness.Kubectl(t, append([]string{"get"}, args...)...),
				mustDump(t, args...))
		})
	}
}

func testTables(t *testing.T, name string, scope []string) {
	t.Run("table", func(t *testing.T) { expectSameTable(t, append([]string{name}, scope...)...) })
	t.Run("wide", func(t *testing.T) {
		expectSameTable(t, append([]string{name, "-o", "wide"}, scope...)...)
	})
}

// expectSameTable compares tables byte for byte. If they differ, it repeats the comparison, because an age
// may have changed. kubectl before 1.37 does not pad a truncated cell.
func expectSameTable(t *testing.T, args ...string) {
	t.Helper()
	get := append([]string{"get"}, args...)
	before := harness.Kubectl(t, get...)
	r := dump(t, args...)
	if r.code != 0 {
		t.Fatalf("exit code %d, stderr:\n%s", r.code, r.stderr)
	}
	if before == "" && !strings.HasPrefix(r.stderr, "No resources found") || before != "" && r.stderr != "" {
		t.Errorf("stderr:\n%s", r.stderr)
	}
	if r.stdout == before {
		return
	}
	if before == harness.Kubectl(t, get...) && harness.Has(t, harness.Padding) {
		expectSame(t, "table", before, r.stdout)
		return
	}
	expectSame(t, "table but for its ages and gaps", withoutAgeValues(before), withoutAgeValues(r.stdout))
}

// testSameAsAPI compares the output with a list of the API in the same order.
func testSameAsAPI(t *testing.T) {
	client, err := dynamic.NewForConfig(harness.Config(t))
	must(t, err)
	for name, gvr := range map[string]schema.GroupVersionResource{
		"certificates": {Group: "cert-manager.io", Version: "v1", Resource: "certificates"},
		"workloads":    {Group: "demo.crdcache.dev", Version: "v1", Resource: "workloads"},
		"namespaces":   {Version: "v1", Resource: "namespaces"},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
			must(t, err)
			if len(list.Items) == 0 {
				t.Fatal("no objects to compare")
			}
			var want []any
			for _, o := range list.Items {
				o.SetManagedFields(nil)
				want = append(want, o.Object)
			}
			var printed unstructured.Unstructured
			must(t, printed.UnmarshalJSON([]byte(mustDump(t, name, "-A", "-o", "json"))))
			expectSame(t, "items", indented(t, want), indented(t, printed.Object["items"]))
		})
	}
}

func indented(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	must(t, err)
	return string(text)
}

// testNames requests types by all their names.
func testNames(t *testing.T) {
	for _, names := range [][]string{
		{"certificates.cert-manager.io", "certificates", "cert", "certs", "certificate", "Certificate",
			"certificates.v1.cert-manager.io"},
		{"workloads.demo.crdcache.dev", "workloads", "wl", "wkl", "workload", "Workload",
			"workloads.v1.demo.crdcache.dev"},
		{"environments.demo.crdcache.dev", "env", "Environment"},
	} {
		want := mustDump(t, names[0], "-A", "-o", "json")
		for _, name := range names[1:] {
			t.Run(name, func(t *testing.T) {
				expectSame(t, "output", want, mustDump(t, name, "-A", "-o", "json"))
			})
		}
		t.Run("all at once", func(t *testing.T) {
			expectSame(t, "output", want, mustDump(t, append(slices.Clone(names), "-A", "-o", "json")...))
		})
	}
}

// testCategory ignores the order, because kubectl orders the types of a category by its discovery.
func testCategory(t *testing.T) {
	sorted := func(text string) string {
		lines := strings.Split(text, "\n")
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	for _, category := range []string{"delivery", "platform"} {
		expectSame(t, category,
			sorted(harness.Kubectl(t, "get", category, "-A", "-o", "name")),
			sorted(mustDump(t, category, "-A", "-o", "name")))
	}
}

func testSeveralTypes(t *testing.T) {
	for _, format := range []string{"json", "yaml", "name"} {
		args := []string{"releases,routes.demo.crdcache.dev,environments", "-A", "-o", format}
		expectSame(t, format, harness.Kubectl(t, append([]string{"get"}, args...)...), mustDump(t, args...))
	}
	// In the opposite order, kubectl prints an empty column NAMESPACE for the cluster-scoped type.
	expectSameTable(t, "environments,releases,routes", "-A")
	expectSameTable(t, "releases,routes", "-n", "payments")
}

// testDeprecatedVersion requests a version that causes a warning of the server.
func testDeprecatedVersion(t *testing.T) {
	args := []string{"routes.v1beta1.demo.crdcache.dev", "-A", "-o", "json"}
	r := dump(t, args...)
	if r.code != 0 || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, "deprecated") {
		t.Errorf("exit code %d, stderr:\n%s\nwant one warning", r.code, r.stderr)
	}
	expectSame(t, "output", harness.Kubectl(t, append([]string{"get"}, args...)...), r.stdout)
}

// dump runs crdcache dump.
func dump(t *testing.T, args ...string) result {
	t.Helper()
	return run(t, harness.Crdcache(t), append([]string{"dump"}, args...)...)
}

// mustDump expects success and an empty stderr, and returns stdout.
func mustDump(t *testing.T, args ...string) string {
	t.Helper()
	r := dump(t, args...)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("dump %s: exit code %d, stderr:\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r.stdout
}

func expectSame(t *testing.T, name, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
}

// installCertManager installs cert-manager's definitions and creates certificates in two namespaces, which it
// returns.
func installCertManager(t *testing.T) []string {
	t.Helper()
	harness.InstallCRDs(t, harness.ReadManifests(t, harness.CertManagerCRDsPath(t))...)
	namespaces := []string{harness.Namespace(t), harness.Namespace(t)}
	for _, ns := range namespaces {
		for n := range 3 {
			harness.Apply(t, numberedCertificate(ns, n))
		}
	}
	return namespaces
}

// numberedCertificate returns a Certificate. Its status has the condition of a printer column only for some
// n.
func numberedCertificate(namespace string, n int) *unstructured.Unstructured {
	conditions := []any{}
	if n > 0 {
		conditions = append(conditions, map[string]any{
			"type": "Ready", "status": []string{"False", "True"}[n%2], "reason": "Tested",
			"message": "a message of\ntwo lines", "lastTransitionTime": "2026-01-02T03:04:05Z",
		})
	}
	name := fmt.Sprintf("web-%d", n)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
		"metadata": map[string]any{"namespace": namespace, "name": name,
			"labels": map[string]any{"n": fmt.Sprint(n)}},
		"spec": map[string]any{
			"secretName": name + "-tls", "dnsNames": []any{name + ".example.org"},
			"issuerRef": map[string]any{"name": "local"},
		},
		"status": map[string]any{"conditions": conditions},
	}}
}
