package harness

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Environment variables of the tests.
const (
	envSandbox = "CRDCACHE_SANDBOX_BIN"
	envAssets  = "KUBEBUILDER_ASSETS"
	// envRequire makes missing programs fail the tests instead of skipping them, if it is 1.
	envRequire = "CRDCACHE_REQUIRE_SANDBOX"
	envKubectl = "CRDCACHE_KUBECTL_BIN"
	// envAPIServerArgs has flags of kube-apiserver, separated by spaces, as "name=value" with or without
	// dashes.
	envAPIServerArgs = "CRDCACHE_APISERVER_ARGS"
)

// locateSandbox finds the sandbox program, and its flags that select etcd and kube-apiserver. If a variable
// names a missing program, it returns an error: the tests must not use another server than the caller's.
func locateSandbox(getenv func(string) string) (program string, flags []string, err error) {
	if program = getenv(envSandbox); program == "" {
		program = filepath.Join(repository(), "bin", "sandbox")
	}
	if !isProgram(program) {
		return "", nil, fmt.Errorf("no control plane: %s is not a program; run 'make sandbox' to build it, "+
			"or name another one with %s", program, envSandbox)
	}
	assets := getenv(envAssets)
	if assets == "" {
		return program, nil, nil
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if !isProgram(filepath.Join(assets, name)) {
			return "", nil, fmt.Errorf("%s=%s has no program %s in it: unset it", envAssets, assets, name)
		}
	}
	return program, []string{"--binaries", assets}, nil
}

func locateKubectl(getenv func(string) string) (string, error) {
	path := cmp.Or(getenv(envKubectl), filepath.Join(repository(), "bin", "kubectl"))
	if !isProgram(path) {
		return "", fmt.Errorf("no kubectl: %s is not a program; run 'make sandbox', or name another one with %s",
			path, envKubectl)
	}
	return path, nil
}

// isProgram reports whether path is an executable file.
func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// repository returns the folder of the repository.
func repository() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..")
}
