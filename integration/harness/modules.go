package harness

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	// Keep the modules in go.mod. They are imported for their folders of definitions alone.
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	_ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil"
)

// CertManagerCRDs returns the folder of cert-manager's definitions, for Read and InstallCRDs.
func CertManagerCRDs(t testing.TB) string {
	t.Helper()
	return filepath.Join(ModuleFolder(t, "github.com/cert-manager/cert-manager"), "deploy", "crds")
}

// PrometheusOperatorCRDs returns the folder of the Prometheus operator's definitions.
func PrometheusOperatorCRDs(t testing.TB) string {
	t.Helper()
	return filepath.Join(ModuleFolder(t, "github.com/prometheus-operator/prometheus-operator"), "example",
		"prometheus-operator-crd")
}

// ModuleFolder returns the folder of a module, which the go command tells. The module is in the module cache
// once this package has been built; "go mod download" brings it there too.
func ModuleFolder(t testing.TB, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("finding the module %s: %v", module, err)
	}
	return strings.TrimSpace(string(out))
}
