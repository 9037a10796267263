package harness

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	// Keep the modules in go.mod. Tests only need their folders with definitions.
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	_ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil"
)

// CertManagerCRDs returns the folder of cert-manager's definitions.
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

// ModuleFolder asks the go command for the folder of a module in the module cache. The build of this package
// or "go mod download" puts it there.
func ModuleFolder(t testing.TB, module string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatalf("finding the module %s: %v", module, err)
	}
	return strings.TrimSpace(string(out))
}
