package harness

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestLocate(t *testing.T) {
	for _, tc := range []struct {
		name     string
		env      map[string]string
		programs []string
		want     location
		wantErr  string // part of the message; it must name the remedy
	}{
		{name: "the repository's", programs: []string{"/repo/bin/sandbox"},
			want: location{sandbox: "/repo/bin/sandbox"}},
		{name: "nothing", wantErr: "run 'make sandbox'"},
		{
			name: "named binary wins", env: map[string]string{envSandbox: "/s"},
			programs: []string{"/s", "/repo/bin/sandbox"}, want: location{sandbox: "/s"},
		},
		{
			name: "assets", env: map[string]string{envAssets: "/a"},
			programs: []string{"/a/etcd", "/a/kube-apiserver", "/repo/bin/sandbox"},
			want:     location{sandbox: "/repo/bin/sandbox", binaries: "/a"},
		},
		{
			name: "named binary is not there", env: map[string]string{envSandbox: "/s"},
			programs: []string{"/repo/bin/sandbox"}, wantErr: envSandbox,
		},
		{
			name: "assets are incomplete", env: map[string]string{envAssets: "/a"},
			programs: []string{"/a/etcd", "/repo/bin/sandbox"}, wantErr: "no program kube-apiserver",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := locate(lookup(tc.env), among(tc.programs), "/repo")
			if got != tc.want {
				t.Errorf("locate = %+v, want %+v", got, tc.want)
			}
			checkMessage(t, err, tc.wantErr)
		})
	}
}

func TestLocateKubectl(t *testing.T) {
	for _, tc := range []struct {
		name     string
		env      map[string]string
		programs []string
		want     string
		wantErr  string
	}{
		{name: "the repository's", programs: []string{"/repo/bin/kubectl"}, want: "/repo/bin/kubectl"},
		{name: "named", env: map[string]string{envKubectl: "/k"},
			programs: []string{"/k", "/repo/bin/kubectl"}, want: "/k"},
		{name: "named and missing", env: map[string]string{envKubectl: "/k"},
			programs: []string{"/repo/bin/kubectl"}, wantErr: envKubectl},
		{name: "that of the assets", env: map[string]string{envAssets: "/a"},
			programs: []string{"/a/kubectl"}, want: "/a/kubectl"},
		{name: "nothing", env: map[string]string{envAssets: "/a"}, wantErr: "run 'make sandbox'"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := locateKubectl(lookup(tc.env), among(tc.programs), "/repo")
			if got != tc.want {
				t.Errorf("locateKubectl = %q, want %q", got, tc.want)
			}
			checkMessage(t, err, tc.wantErr)
		})
	}
}

func TestIsSandboxRequired(t *testing.T) {
	for value, want := range map[string]bool{"": false, "0": false, "1": true} {
		if got := isSandboxRequired(lookup(map[string]string{envRequire: value})); got != want {
			t.Errorf("with %s=%q: %t, want %t", envRequire, value, got, want)
		}
	}
}

func TestIsProgram(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"program": 0o700, "text": 0o600} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]bool{"program": true, "text": false, "missing": false, ".": false} {
		if got := isProgram(filepath.Join(dir, path)); got != want {
			t.Errorf("isProgram of %s: %t, want %t", path, got, want)
		}
	}
}

func lookup(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

func among(programs []string) func(string) bool {
	return func(path string) bool { return slices.Contains(programs, path) }
}

func checkMessage(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case err == nil && want != "":
		t.Errorf("no error, want one with %q", want)
	case err != nil && want == "":
		t.Errorf("unexpected error: %v", err)
	case err != nil && !strings.Contains(err.Error(), want):
		t.Errorf("error %q does not say %q", err, want)
	}
}
