package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Environment variables that say where programs are, whether tests may be skipped without them, and how the
// API server is run.
const (
	envSandbox = "CRDCACHE_SANDBOX_BIN"
	envAssets  = "KUBEBUILDER_ASSETS"
	envRequire = "CRDCACHE_REQUIRE_SANDBOX"
	envKubectl = "CRDCACHE_KUBECTL_BIN"
	// envAPIServerArgs are more flags of kube-apiserver, separated by spaces, each as "name=value" with or
	// without dashes in front.
	envAPIServerArgs = "CRDCACHE_APISERVER_ARGS"
)

// location is what a control plane is started with.
type location struct {
	sandbox  string // the sandbox binary
	binaries string // the folder of etcd and kube-apiserver; empty: that of the sandbox binary
}

// locate finds the programs of the control plane. A variable that names a missing program is an error even if
// there is another one: the tests must not run against another server than the caller asked for.
func locate(getenv func(string) string, isProgram func(string) bool, root string) (location, error) {
	where := location{sandbox: getenv(envSandbox), binaries: getenv(envAssets)}
	if where.sandbox == "" {
		where.sandbox = filepath.Join(root, "bin", "sandbox")
	}
	if !isProgram(where.sandbox) {
		return location{}, fmt.Errorf(
			"no control plane: %s is not a program; run 'make sandbox' to build it, "+
				"or name another one with %s", where.sandbox, envSandbox)
	}
	if where.binaries == "" {
		return where, nil
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if !isProgram(filepath.Join(where.binaries, name)) {
			return location{}, fmt.Errorf("%s=%s has no program %s in it: unset it", envAssets,
				where.binaries, name)
		}
	}
	return where, nil
}

// locateKubectl decides which kubectl to run.
func locateKubectl(getenv func(string) string, isProgram func(string) bool, root string) (string, error) {
	if path := getenv(envKubectl); path != "" {
		if !isProgram(path) {
			return "", fmt.Errorf("%s=%s is not a program: run 'make sandbox', or unset it", envKubectl, path)
		}
		return path, nil
	}
	candidates := []string{filepath.Join(root, "bin", "kubectl")}
	if dir := getenv(envAssets); dir != "" {
		candidates = append(candidates, filepath.Join(dir, "kubectl"))
	}
	for _, path := range candidates {
		if isProgram(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("no kubectl: there is no %s; run 'make sandbox' to build it", candidates[0])
}

// mustHave reports whether a missing program fails tests instead of skipping them.
func mustHave(getenv func(string) string) bool { return getenv(envRequire) == "1" }

// isProgram reports whether path is a file that may be executed.
func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// moduleRoot returns the folder of the repository: the one that holds the folder of this module. Tests run
// in the folder of their package.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if filepath.Base(dir) == "integration" {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				return filepath.Dir(dir), nil
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("the working directory is not inside the integration module")
		}
		dir = parent
	}
}
