package crdcached_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// authority signs client certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// newAuthority creates an authority, and writes its certificate to a file.
func newAuthority(folder, name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
	if err != nil {
		return nil, err
	}
	return &authority{certificate, key}, os.WriteFile(filepath.Join(folder, name),
		encode(certificate.Raw), 0o600)
}

func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der})
}

// userConfig returns a configuration with a client certificate that is valid until end.
func (a *authority) userConfig(t *testing.T, name string, end time.Time) *rest.Config {
	t.Helper()
	certificate, key, err := a.sign(name, end)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(harness.Config(t))
	config.CertData, config.KeyData, config.QPS = certificate, key, -1
	return config
}

// sign returns a client certificate that is valid until end, and its key, in PEM.
func (a *authority) sign(name string, end time.Time) (certificate, privateKey []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore: a.certificate.NotBefore, NotAfter: end,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	return encode(signed), text, err
}

// TestClientCertificates checks that crdcached accepts the client certificates that the API server accepts.
func TestClientCertificates(t *testing.T) {
	admin, err := kubernetes.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	s := harness.StartCrdcached(t, "types: [namespaces]\n")
	const name = "certified"
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
			Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.RbacV1().ClusterRoleBindings().Delete(context.Background(), name,
			metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	stranger, err := newAuthority(t.TempDir(), "stranger")
	if err != nil {
		t.Fatal(err)
	}
	inAnHour := time.Now().Add(time.Hour)
	known := trustedAuthority.userConfig(t, name, inAnHour)
	harness.Eventually(t, func(context.Context) error { // new permissions take effect with a delay
		if got := send(t, known, http.MethodGet, "/api/v1/namespaces"); got.Code != http.StatusOK {
			return fmt.Errorf("with a certificate: %d", got.Code)
		}
		return nil
	})
	// crdcached reloads the authorities, which apply to new connections
	harness.Eventually(t, func(context.Context) error {
		if got := send(t, s.As(trustedAuthority.userConfig(t, name, inAnHour)), http.MethodGet,
			"/api/v1/namespaces"); got.Code != http.StatusOK {
			return fmt.Errorf("crdcached, with a certificate: %d", got.Code)
		}
		return nil
	})
	for reason, config := range map[string]*rest.Config{
		"known": known, "without rights": trustedAuthority.userConfig(t, "nobody", inAnHour),
		"of a stranger": stranger.userConfig(t,
			name, inAnHour),
		"expired": trustedAuthority.userConfig(t, name, time.Now().Add(-time.Minute)),
	} {
		t.Run(reason, func(t *testing.T) {
			compare(t, s, config, http.MethodGet, "/api/v1/namespaces", "application/json")
		})
	}
}
