package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdcache/crdcache/test/integration/harness"
)

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
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			kubectl("apply", "-f", file)
			kubectl("patch", "certificate", certificate, "-n", "web", "--subresource=status", "--type=merge", "-p",
				fmt.Sprintf(`{"status":{"notAfter":%q}}`, time.Now().AddDate(0, 0, days).UTC().Format(time.RFC3339)))
		}
	}
	merged.Clusters["gone"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	merged.Contexts["gone"] = &clientcmdapi.Context{Cluster: "gone"}
	kubeconfig, config := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "indexes.yaml")
	if err := clientcmd.WriteToFile(*merged, kubeconfig); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(expiryIndex), 0o600); err != nil {
		t.Fatal(err)
	}
	r := run(t, harness.Crdcache(t), "query", "certs", "-A", "--all-contexts", "--config", config, "--index",
		"expiry<now+14d", "--sort-by", "expiry", "-o", "name", "--kubeconfig", kubeconfig)
	const certificate = "\tcertificate.cert-manager.io/"
	r.expect(t, 5, "production"+certificate+"old\nproduction"+certificate+"production\n"+
		"staging"+certificate+"old\nstaging"+certificate+"staging\n", "warning: gone: cannot reach the API server")
	if lines := strings.Count(r.stdout, "\n"); lines != 4 {
		t.Errorf("the command printed %d certificates, want 4:\n%s", lines, r.stdout)
	}
	r = run(t, harness.Crdcache(t), "snapshot", "diff", "--contexts", "staging,production", "certificates",
		"--ignore", "status", "--kubeconfig", kubeconfig)
	r.expect(t, 1, "certificates.cert-manager.io: 1 added, 1 removed, 0 changed\n+ web/production\n- web/staging\n", "")
}

// addContext adds the current context of a kubeconfig under a name.
func addContext(t *testing.T, to *clientcmdapi.Config, name, kubeconfig string) {
	t.Helper()
	from, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	current := from.Contexts[from.CurrentContext]
	to.Clusters[name], to.AuthInfos[name] = from.Clusters[current.Cluster], from.AuthInfos[current.AuthInfo]
	to.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
}
