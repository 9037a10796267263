package crdcached_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/client-go/util/keyutil"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// crdcachedKubeconfig returns the path of a kubeconfig with exactly the rights that the manifests grant to
// crdcached.
func crdcachedKubeconfig(t *testing.T) string {
	t.Helper()
	harness.Apply(t, ofKind(buildManifests(t, "base"), "Namespace", "ServiceAccount", "ClusterRole",
		"ClusterRoleBinding", "RoleBinding")...)
	config := harness.Config(t)
	config.BearerToken = strings.TrimSpace(harness.Kubectl(t, "create", "token", "crdcached", "-n", "crdcached"))
	return harness.WriteKubeconfig(t, config)
}

// expiredCopy returns a copy of token with an expiry in the past, signed with the cluster's key.
func expiredCopy(t *testing.T, token string) string {
	t.Helper()
	key, err := keyutil.PrivateKeyFromFile(harness.APIServerFlag(t, "--service-account-signing-key-file"))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(text, &claims); err != nil {
		t.Fatal(err)
	}
	const hour = 3600
	claims["iat"], claims["nbf"], claims["exp"] = claims["iat"].(float64)-2*hour,
		claims["iat"].(float64)-2*hour, claims["iat"].(float64)-hour
	if text, err = json.Marshal(claims); err != nil {
		t.Fatal(err)
	}
	signed := parts[0] + "." + base64.RawURLEncoding.EncodeToString(text)
	sum := sha256.Sum256([]byte(signed))
	return signed + "." + base64.RawURLEncoding.EncodeToString(sign(t, key, sum[:]))
}

// sign signs the hash of a token, by the algorithm for the type of the key.
func sign(t *testing.T, key any, sum []byte) []byte {
	t.Helper()
	switch signer := key.(type) {
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, signer, sum)
		if err != nil {
			t.Fatal(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	case *rsa.PrivateKey:
		signed, err := rsa.SignPKCS1v15(rand.Reader, signer, crypto.SHA256, sum)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	t.Fatalf("cannot sign a token with a %T", key)
	return nil
}
