package run

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	// Keeps the module in go.mod. It is imported for its folder of definitions alone.
	_ "github.com/cert-manager/cert-manager/pkg/apis/certmanager"
)

// CertManagerCRDs returns the folder of cert-manager's definitions, in the module cache. It has to be called in
// the folder of this module.
func CertManagerCRDs(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	if err != nil {
		return "", fmt.Errorf("finding the module of cert-manager (is this run in the folder of the benchmark's module?): %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "deploy", "crds"), nil
}
