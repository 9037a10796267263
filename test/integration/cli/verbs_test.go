package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/test/integration/harness"
)

const certificates = "certificates.cert-manager.io"

func certificate(namespace, name, issuer string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1", "kind": "Certificate",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{
			"secretName": name + "-tls", "dnsNames": []any{name +
				".example.org"}, "issuerRef": map[string]any{"name": issuer},
		},
	}}
}

// TestVerbs runs the first commands of a new user: suggest an index config for cert-manager's types, validate
// it, and query with it.
func TestVerbs(t *testing.T) {
	harness.InstallCRDs(t, harness.ReadManifests(t, harness.CertManagerCRDsPath(t))...)
	ns := harness.Namespace(t)
	harness.Apply(t, certificate(ns, "a", "one"), certificate(ns, "b", "one"), certificate(ns, "c", "two"))
	crdcache := harness.Crdcache(t)
	index := "issuerRefName"
	if !harness.Has(t, harness.SelectableFields) {
		index = "issuer" // the index has the name of a printed column, because the definition has no selectable field
	}

	suggested := run(t, crdcache, "suggest", certificates)
	suggested.expect(t, 0, ".spec.issuerRef.name", "suggests more indexes than the 12 printed ones")
	config := filepath.Join(t.TempDir(), "indexes.yaml")
	if err := os.WriteFile(config, []byte(suggested.stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, crdcache, "validate", config, "--live").expect(t, 0, "compared with the cluster's types", "")
	invalidFile := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(invalidFile, []byte(strings.ReplaceAll(suggested.stdout, "issuerRef",
		"issuerReff")),
		0o600); err != nil {
		t.Fatal(err)
	}
	run(t, crdcache, "validate", invalidFile, "--live").expect(t, 2, "", "did you mean .spec.issuerRef")

	run(t, crdcache, "query", "certificates", "--config", config, "--index", index+"=one", "-n", ns,
		"--keys-only").
		expect(t, 0, ns+"/a\n"+ns+"/b\n", "")
	run(t, crdcache, "query", certificates, "--where", `@.spec.issuerRef.name == "two"`, "-A",
		"--count").expect(t, 0, "1\n", "")
	table := run(t, crdcache, "query", "certificates", "--config", config, "--index", index+"=two", "-n", ns)
	table.expect(t, 0, "c-tls", "")
	run(t, crdcache, "stats", "certificates", "--config", config, "-A").expect(t, 0,
		index+": 2 values in 3 of 3 objects", "")
	run(t, crdcache, "resources", "*.cert-manager.io", "--config", config).expect(t, 0,
		"certificates/"+index, "")
	run(t, crdcache, "version", "--live").expect(t, 0, "server: v1.", "")
	run(t, crdcache, "__complete", "dump", "certificates.").expect(t, 0, certificates,
		"ShellCompDirectiveNoFileComp")
}
