package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

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
	must(t, os.WriteFile(config, []byte(suggested.stdout), 0o600))
	run(t, crdcache, "validate", config, "--live").expect(t, 0, "compared with the cluster's types", "")
	invalidFile := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(invalidFile, []byte(strings.ReplaceAll(suggested.stdout, "issuerRef",
		"issuerReff")),
		0o600); err != nil {
		t.Fatal(err)
	}
	run(t, crdcache, "validate", invalidFile, "--live").expect(t, 2, "", "did you mean .spec.issuerRef")

	run(t, crdcache, "query", "certificates", "--config", config, "--index", index+"=one", "-n", ns,
		"--keys-only").expect(t, 0, ns+"/a\n"+ns+"/b\n", "")
	run(t, crdcache, "query", certificates, "--where", `@.spec.issuerRef.name == "two"`, "-A",
		"--count").expect(t, 0, "1\n", "")
	table := run(t, crdcache, "query", "certificates", "--config", config, "--index", index+"=two", "-n", ns)
	table.expect(t, 0, "c-tls", "")
	run(t, crdcache, "stats", "certificates", "--config", config, "-A").expect(t, 0,
		index+": 2 values in 3 of 3 objects", "")
	run(t, crdcache, "resources", "*.cert-manager.io", "--config", config).expect(t, 0,
		"certificates/"+index, "")
	run(t, crdcache, "__complete", "dump", "certificates.").expect(t, 0, certificates,
		"ShellCompDirectiveNoFileComp")
}

// ageColumnPattern matches a row that ends with an age, which only a server knows.
var ageColumnPattern = regexp.MustCompile(`(?m)^(.*\S) +(AGE|[0-9]+[smhd][0-9smhd]*)$`)

// withoutAgeColumn removes the age column and repeated spaces, because the width of a column depends on its
// content.
func withoutAgeColumn(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		row := ageColumnPattern.ReplaceAllString(strings.TrimRight(line, " \n"), "$1")
		lines = append(lines, strings.Join(strings.Fields(row), " "))
	}
	return strings.Join(lines, "\n")
}

// TestTour runs the commands of docs/tour.md and README.md on a cluster with the objects of their files.
// Without --from, the commands must print the same text. Trees are not compared, because a cluster has the
// UIDs of owners and has more types.
func TestTour(t *testing.T) {
	const data = "../../../testdata"
	harness.InstallCRDs(t, harness.ReadManifests(t, data+"/crds")...)
	harness.Apply(t, harness.ReadManifests(t, data+"/objects")...)
	bin, home := t.TempDir(), t.TempDir()
	must(t, os.Symlink(harness.Crdcache(t), filepath.Join(bin, "crdcache")))
	console := regexp.MustCompile("(?s)```console\n(.*?)```")
	replayed := 0
	for _, page := range []string{"docs/tour.md", "README.md"} {
		text, err := os.ReadFile("../../../" + page)
		must(t, err)
		for _, block := range console.FindAllStringSubmatch(string(text), -1) {
			for _, step := range strings.Split(block[1], "$ ")[1:] {
				line, want, _ := strings.Cut(step, "\n")
				if !strings.Contains(line, "--from") || strings.HasPrefix(line, "crdcache tree") {
					continue
				}
				live := regexp.MustCompile(` --from objects/\S*-(\w+)\.yaml`).ReplaceAllString(line, " -n $1")
				live = regexp.MustCompile(` --from (crds|objects)`).ReplaceAllString(live, "")
				if !regexp.MustCompile(` (-n|-A|resources|suggest|dump workload/)`).MatchString(live) {
					live += " -A" // files are read in all namespaces
				}
				if strings.Contains(live, "dump workload/") {
					live += " -n edge"
				}
				cmd := newCommand(t, "sh", "-c", live)
				cmd.Dir = data
				cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+home)
				got, _ := cmd.CombinedOutput() // the page also shows errors
				if diff := cmp.Diff(withoutAgeColumn(want), withoutAgeColumn(string(got))); diff != "" {
					t.Errorf("%s: $ %s\n(-page +cluster)\n%s", page, live, diff)
				}
				replayed++
			}
		}
	}
	if replayed < 10 {
		t.Errorf("the pages have only %d commands, want at least 10", replayed)
	}
}

const expiryIndex = `apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: expiry}
spec:
  resources:
  - name: certs
    match: {group: cert-manager.io, version: v1, resource: certificates}
    indexes: [{name: expiry, path: .status.notAfter, type: Time, order: Sorted}]
`

// TestExpiringInAnyCluster lists the certificates of two clusters that expire within 14 days, with one
// command. A third cluster cannot be reached.
func TestExpiringInAnyCluster(t *testing.T) {
	dir := t.TempDir()
	merged := clientcmdapi.NewConfig()
	for _, name := range []string{"staging", "production"} {
		kubeconfig := harness.StartAnotherCluster(t).Kubeconfig
		addContext(t, merged, name, kubeconfig)
		kubectl := func(args ...string) { // repeats, because an established type is served a moment later
			t.Helper()
			harness.Eventually(t, func(context.Context) error {
				r := run(t, harness.KubectlPath(t), append([]string{"--kubeconfig", kubeconfig}, args...)...)
				if r.code != 0 {
					return fmt.Errorf("kubectl %s: %s", strings.Join(args, " "), r.stderr)
				}
				return nil
			})
		}
		kubectl("apply", "--server-side", "-f", harness.CertManagerCRDsPath(t))
		kubectl("wait", "--for=condition=Established", "crd/certificates.cert-manager.io")
		kubectl("create", "namespace", "web")
		for certificate, days := range map[string]int{"old": 3, "new": 80, name: 10} {
			file := filepath.Join(dir, certificate+".yaml")
			text := fmt.Sprintf("{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: %s, namespace: web}, "+
				"spec: {secretName: tls, issuerRef: {name: local}}}", certificate)
			must(t, os.WriteFile(file, []byte(text), 0o600))
			kubectl("apply", "-f", file)
			kubectl("patch", "certificate", certificate, "-n", "web", "--subresource=status", "--type=merge", "-p",
				fmt.Sprintf(`{"status":{"notAfter":%q}}`, time.Now().AddDate(0, 0, days).UTC().Format(time.RFC3339)))
		}
	}
	merged.Clusters["gone"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	merged.Contexts["gone"] = &clientcmdapi.Context{Cluster: "gone"}
	kubeconfig, config := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "indexes.yaml")
	must(t, clientcmd.WriteToFile(*merged, kubeconfig))
	must(t, os.WriteFile(config, []byte(expiryIndex), 0o600))
	r := run(t, harness.Crdcache(t), "query", "certs", "-A", "--all-contexts", "--config", config, "--index",
		"expiry<now+14d", "--sort-by", "expiry", "-o", "name", "--kubeconfig", kubeconfig)
	const certificate = "\tcertificate.cert-manager.io/"
	r.expect(t, 5, "production"+certificate+"old\nproduction"+certificate+"production\n"+
		"staging"+certificate+"old\nstaging"+certificate+"staging\n", "warning: gone: cannot reach the API server")
	if lines := strings.Count(r.stdout, "\n"); lines != 4 {
		t.Errorf("the command printed %d certificates, want 4:\n%s", lines, r.stdout)
	}
	r = run(t, harness.Crdcache(t), "diff", "context:staging", "context:production", "certificates",
		"--ignore", "status", "--kubeconfig", kubeconfig)
	r.expect(t, 1, "certificates.cert-manager.io: 1 added, 1 removed, 0 changed\n+ web/production\n- web/staging\n", "")
}

// addContext adds the current context of a kubeconfig under a name.
func addContext(t *testing.T, to *clientcmdapi.Config, name, kubeconfig string) {
	t.Helper()
	from, err := clientcmd.LoadFromFile(kubeconfig)
	must(t, err)
	current := from.Contexts[from.CurrentContext]
	to.Clusters[name], to.AuthInfos[name] = from.Clusters[current.Cluster], from.AuthInfos[current.AuthInfo]
	to.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
}
