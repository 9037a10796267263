package controlplane

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTokensAreCreatedOnce(t *testing.T) {
	layout := Layout{Dir: t.TempDir()}
	first, err := loadTokens(layout)
	if err != nil {
		t.Fatal(err)
	}
	second, err := loadTokens(layout)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second, cmp.AllowUnexported(credentials{})); diff != "" {
		t.Errorf("a second start would invalidate kubeconfigs:\n%s", diff)
	}
	if first.adminToken == first.unprivilegedToken {
		t.Error("both users have the same token")
	}
	if info, err := os.Stat(layout.tokens()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("tokens: %v, %v", info, err)
	}
}

// TestOldCertificatesAreReplaced: envtest's certificates are valid for a week.
func TestOldCertificatesAreReplaced(t *testing.T) {
	layout := Layout{Dir: t.TempDir()}
	if ca, err := loadCA(layout); ca != nil || err != nil {
		t.Fatalf("in a new folder: %q, %v", ca, err)
	}
	serving := filepath.Join(layout.pki(), "apiserver.crt")
	if err := errors.Join(writeFile(layout.caCert(), []byte("ca")), writeFile(serving, nil)); err != nil {
		t.Fatal(err)
	}
	if ca, err := loadCA(layout); string(ca) != "ca" || err != nil {
		t.Errorf("a new certificate: %q, %v", ca, err)
	}
	old := time.Now().Add(-renewal)
	if err := os.Chtimes(layout.caCert(), old, old); err != nil {
		t.Fatal(err)
	}
	if ca, err := loadCA(layout); ca != nil || err != nil {
		t.Errorf("an old certificate: %q, %v", ca, err)
	}
	if _, err := os.Stat(serving); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old serving certificate is still there: %v", err)
	}
}
