// Package operators_test suggests index configs for the types of well-known operators and validates them.
package operators_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	// Keep the modules in go.mod. Tests only need their folders with definitions.
	_ "github.com/prometheus-operator/prometheus-operator/pkg/versionutil"
	_ "sigs.k8s.io/cluster-api/version"
	_ "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crdcache/crdcache/test/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// operators are the modules with their folders of definitions and the minimum numbers of types.
var operators = []struct {
	module  string
	folders []string
	types   int
}{
	{"github.com/cert-manager/cert-manager", []string{"deploy/crds"}, 6},
	{"sigs.k8s.io/gateway-api", []string{"config/crd/experimental", "config/crd/standard"}, 10},
	{"sigs.k8s.io/cluster-api", []string{"config/crd", "bootstrap/kubeadm/config/crd",
		"controlplane/kubeadm/config/crd"}, 15},
	{"github.com/prometheus-operator/prometheus-operator", []string{"example/prometheus-operator-crd"}, 10},
}

// TestSuggestionsValidate checks that the suggested configs are valid without warnings. suggest itself may
// warn about indexes and references that it omits.
func TestSuggestionsValidate(t *testing.T) {
	crdcache := harness.Crdcache(t)
	for _, o := range operators {
		t.Run(o.module, func(t *testing.T) {
			module := harness.ModuleFolder(t, o.module)
			kinds := map[string]bool{}
			for _, folder := range o.folders {
				for _, kind := range suggestAndValidate(t, crdcache, filepath.Join(module, folder)) {
					kinds[kind] = true
				}
			}
			if len(kinds) < o.types {
				t.Errorf("%d types, want %d: %v", len(kinds), o.types, kinds)
			}
		})
	}
}

var resourcePattern = regexp.MustCompile(`(?m)match: \{group: [^,]+, version: [^,]+, resource: ([^}]+)\}`)

// suggestAndValidate validates the suggested config for the definitions in a folder, and returns its types.
func suggestAndValidate(t *testing.T, crdcache, folder string) (types []string) {
	t.Helper()
	run := func(args ...string) []byte {
		t.Helper()
		var stdout, stderr bytes.Buffer
		cmd := exec.Command(crdcache, append(args, "--crds", folder)...)
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil || args[0] == "validate" && stderr.Len() > 0 {
			t.Errorf("%s: %v\n%s", cmd, err, &stderr)
		}
		return stdout.Bytes()
	}
	file := filepath.Join(t.TempDir(), "suggested.yaml")
	config := run("suggest", "*")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	run("validate", file)
	for _, m := range resourcePattern.FindAllSubmatch(config, -1) {
		types = append(types, string(m[1]))
	}
	return types
}
