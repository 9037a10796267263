package harness

import (
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	// Keeps the module in go.mod. It is imported for its folder of definitions alone.
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
)

// certManagerFolder asks the go command once. The module is in the module cache once this package has been
// built; "go mod download" brings it there too.
var certManagerFolder = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	return filepath.Join(strings.TrimSpace(string(out)), "deploy", "crds"), err
})

// CertManagerCRDs returns the folder of cert-manager's definitions, for Read and InstallCRDs.
func CertManagerCRDs(t testing.TB) string {
	t.Helper()
	dir, err := certManagerFolder()
	if err != nil {
		t.Fatalf("finding the module of cert-manager: %v", err)
	}
	return dir
}
