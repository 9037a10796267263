package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"time"
)

const certLifetime = 10 * 365 * 24 * time.Hour

// credentials are what clients need besides the server's address.
type credentials struct {
	caPEM             []byte
	adminToken        string
	unprivilegedToken string
}

// ensureCredentials creates keys, certificates and tokens in a new directory,
// and reads them back from one that already has them, so that kubeconfigs stay
// valid when a sandbox is started again.
func ensureCredentials(l Layout) (credentials, error) {
	// The tokens are written last: their presence means that all is there.
	if _, err := os.Stat(l.tokens()); errors.Is(err, os.ErrNotExist) {
		if err := createCredentials(l); err != nil {
			return credentials{}, fmt.Errorf("create credentials: %w", err)
		}
	}
	ca, err := os.ReadFile(l.caCert())
	if err != nil {
		return credentials{}, err
	}
	tokens, err := os.ReadFile(l.tokens())
	if err != nil {
		return credentials{}, err
	}
	lines := strings.Split(strings.TrimSpace(string(tokens)), "\n")
	if len(lines) != 2 {
		return credentials{}, fmt.Errorf("%s: want 2 lines, found %d", l.tokens(), len(lines))
	}
	admin, _, _ := strings.Cut(lines[0], ",")
	unprivileged, _, _ := strings.Cut(lines[1], ",")
	return credentials{caPEM: ca, adminToken: admin, unprivilegedToken: unprivileged}, nil
}

func createCredentials(l Layout) error {
	if err := os.MkdirAll(l.pki(), 0o700); err != nil {
		return err
	}
	if err := createServingCert(l); err != nil {
		return err
	}
	saKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeKey(l.saKey(), saKey); err != nil {
		return err
	}
	tokens := fmt.Sprintf("%s,%s,%s,system:masters\n%s,%s,%s\n",
		randomToken(), adminUser, adminUser,
		randomToken(), unprivilegedUser, unprivilegedUser)
	return writeFile(l.tokens(), []byte(tokens))
}

// createServingCert makes a throw-away authority and one certificate for
// loopback. The authority's key is not kept.
func createServingCert(l Layout) error {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "crdcache sandbox"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(certLifetime),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "kube-apiserver"},
		NotBefore:    ca.NotBefore,
		NotAfter:     ca.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.ParseIP(loopback)},
		DNSNames:     []string{"localhost", "kubernetes.default.svc"},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return err
	}
	return errors.Join(
		writePEM(l.caCert(), "CERTIFICATE", caDER),
		writePEM(l.servingCert(), "CERTIFICATE", leafDER),
		writeKey(l.servingKey(), key))
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// writeFile replaces path in one step, so that no reader sees half a file.
func writeFile(path string, data []byte) error {
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func randomToken() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
