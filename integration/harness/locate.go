package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Environment variables that say where programs are, whether tests may be skipped without them, and how the API
// server is run.
const (
	envSandbox = "CRDCACHE_SANDBOX_BIN"
	envAssets  = "KUBEBUILDER_ASSETS"
	envRequire = "CRDCACHE_REQUIRE_SANDBOX"
	envKubectl = "CRDCACHE_KUBECTL_BIN"
	// envAPIServerArgs are more flags of kube-apiserver, separated by spaces, each as "name=value" with or without
	// dashes in front.
	envAPIServerArgs = "CRDCACHE_APISERVER_ARGS"
)

// location is where a control plane can be started from: one of the two is set.
type location struct {
	sandbox string // the sandbox binary
	assets  string // the folder of etcd and kube-apiserver
}

// locate decides where the control plane comes from. A variable that names something that is not there is
// an error even if there is something else: the tests must not run against another server than was asked for.
func locate(getenv func(string) string, isProgram func(string) bool, root string) (location, error) {
	if path := getenv(envSandbox); path != "" {
		if !isProgram(path) {
			return location{}, fmt.Errorf("%s=%s is not a program: run 'make sandbox', or unset it", envSandbox, path)
		}
		return location{sandbox: path}, nil
	}
	if dir := getenv(envAssets); dir != "" {
		for _, name := range []string{"etcd", "kube-apiserver"} {
			if !isProgram(filepath.Join(dir, name)) {
				return location{}, fmt.Errorf("%s=%s has no program %s in it: run 'make sandbox' and unset it", envAssets, dir, name)
			}
		}
		return location{assets: dir}, nil
	}
	path := filepath.Join(root, "bin", "sandbox")
	if !isProgram(path) {
		return location{}, fmt.Errorf("no control plane: there is no %s; run 'make sandbox' to build it", path)
	}
	return location{sandbox: path}, nil
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
