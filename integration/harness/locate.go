package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Environment variables of the tests.
const (
	envSandbox = "CRDCACHE_SANDBOX_BIN"
	envAssets  = "KUBEBUILDER_ASSETS"
	envRequire = "CRDCACHE_REQUIRE_SANDBOX"
	envKubectl = "CRDCACHE_KUBECTL_BIN"
	// envAPIServerArgs has flags of kube-apiserver, separated by spaces, as "name=value" with or without
	// dashes.
	envAPIServerArgs = "CRDCACHE_APISERVER_ARGS"
)

// location has the programs and flags of a control plane.
type location struct {
	sandbox  string // path of the sandbox binary
	binaries string // folder of etcd and kube-apiserver, by default the folder of sandbox
}

// locate finds the programs of the control plane. If a variable names a missing program, it returns an error:
// the tests must not use another server than the caller's.
func locate(getenv func(string) string, isProgram func(string) bool, root string) (location, error) {
	paths := location{sandbox: getenv(envSandbox), binaries: getenv(envAssets)}
	if paths.sandbox == "" {
		paths.sandbox = filepath.Join(root, "bin", "sandbox")
	}
	if !isProgram(paths.sandbox) {
		return location{}, fmt.Errorf("no control plane: %s is not a program; run 'make sandbox' to build it, "+
			"or name another one with %s", paths.sandbox, envSandbox)
	}
	if paths.binaries == "" {
		return paths, nil
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if !isProgram(filepath.Join(paths.binaries, name)) {
			return location{}, fmt.Errorf("%s=%s has no program %s in it: unset it", envAssets,
				paths.binaries, name)
		}
	}
	return paths, nil
}

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

// isSandboxRequired reports whether missing programs fail the tests instead of skipping them.
func isSandboxRequired(getenv func(string) string) bool { return getenv(envRequire) == "1" }

// isProgram reports whether path is an executable file.
func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// moduleRoot returns the folder of the repository. Tests run in the folder of their package.
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
