package harness

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	// Keep the modules in go.mod. Tests only need their folders with definitions.
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	_ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/manifest"
)

// ReadManifests returns the objects in files and folders. It fails the test if there are none, or if a
// document is not an object.
func ReadManifests(t testing.TB, paths ...string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	reader := manifest.NewReader(func(p *manifest.Problem) {
		if !p.Warning {
			t.Error(p)
		}
	})
	listing, err := manifest.List(t.Context(), paths, manifest.ListOptions{})
	for _, file := range listing.Files {
		must(t, reader.Read(t.Context(), file, nil, func(e manifest.Entry) {
			object, err := e.Decode()
			must(t, err)
			objects = append(objects, object)
		}))
	}
	must(t, err)
	if len(objects) == 0 {
		t.Fatalf("no objects in %q", paths)
	}
	return objects
}

// CertManagerCRDsPath returns the folder of cert-manager's definitions.
func CertManagerCRDsPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(ModuleFolder(t, "github.com/cert-manager/cert-manager"), "deploy", "crds")
}

// PrometheusOperatorCRDsPath returns the folder of the Prometheus operator's definitions.
func PrometheusOperatorCRDsPath(t testing.TB) string {
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
