package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
)

func TestCredentialsAreCreatedOnce(t *testing.T) {
	layout := Layout{Dir: t.TempDir()}
	first, err := ensureCredentials(layout)
	if err != nil {
		t.Fatal(err)
	}
	second, err := ensureCredentials(layout)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second, cmp.AllowUnexported(credentials{})); diff != "" {
		t.Errorf("a second start would invalidate kubeconfigs:\n%s", diff)
	}
	if first.adminToken == first.unprivilegedToken {
		t.Error("both users have the same token")
	}
}

func TestServingCertificateIsTrusted(t *testing.T) {
	layout := Layout{Dir: t.TempDir()}
	creds, err := ensureCredentials(layout)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(layout.servingCert(), layout.servingKey())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(creds.caPEM)
	for _, name := range []string{loopback, "localhost"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if info, err := os.Stat(layout.servingKey()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("key: %v, %v", info, err)
	}
}

func TestKubeconfig(t *testing.T) {
	layout := Layout{Dir: t.TempDir()}
	creds := credentials{caPEM: []byte("ca"), adminToken: "A", unprivilegedToken: "U"}
	if err := writeKubeconfig(layout.Kubeconfig(), "https://127.0.0.1:1", creds); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(layout.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if config.CurrentContext != adminUser {
		t.Errorf("current context %q", config.CurrentContext)
	}
	for name, token := range map[string]string{adminUser: "A", unprivilegedUser: "U"} {
		context := config.Contexts[name]
		if context == nil || config.AuthInfos[context.AuthInfo].Token != token ||
			config.Clusters[context.Cluster].Server != "https://127.0.0.1:1" {
			t.Errorf("context %s: %+v", name, context)
		}
	}
}
