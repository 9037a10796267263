package harness

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLocate(t *testing.T) {
	dir := t.TempDir()
	program := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	sandbox, kubectl := program("sandbox", 0o700), program("kubectl", 0o700)
	assets, incomplete := filepath.Dir(program("assets/etcd", 0o700)), filepath.Dir(program("less/etcd", 0o700))
	program("assets/kube-apiserver", 0o700)
	for name, tc := range map[string]struct {
		env   map[string]string
		flags []string
		want  string // part of the error; it must name the remedy
	}{
		"sandbox": {env: map[string]string{envSandbox: sandbox, envKubectl: kubectl}},
		"assets": {env: map[string]string{envSandbox: sandbox, envKubectl: kubectl, envAssets: assets},
			flags: []string{"--binaries", assets}},
		"missing":    {env: map[string]string{envSandbox: dir + "/none"}, want: "run 'make sandbox'"},
		"no program": {env: map[string]string{envSandbox: program("text", 0o600)}, want: envSandbox},
		"incomplete assets": {env: map[string]string{envSandbox: sandbox, envAssets: incomplete},
			want: "no program kube-apiserver"},
		"missing kubectl": {env: map[string]string{envSandbox: sandbox, envKubectl: dir + "/none"},
			want: envKubectl},
	} {
		getenv := func(name string) string { return tc.env[name] }
		path, flags, err := locateSandbox(getenv)
		if err == nil {
			_, err = locateKubectl(getenv)
		}
		switch {
		case tc.want == "" && (err != nil || path != sandbox || !slices.Equal(flags, tc.flags)):
			t.Errorf("%s: %s, %q, %v; want %s, %q", name, path, flags, err, sandbox, tc.flags)
		case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: the error is %v, want %q", name, err, tc.want)
		}
	}
}
