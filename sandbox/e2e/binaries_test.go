package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBinaries runs scripts from another folder as components.
func TestBinaries(t *testing.T) {
	t.Parallel()
	folder, dir := t.TempDir(), t.TempDir()
	real, err := filepath.Abs(filepath.Dir(binary))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string) {
		script := fmt.Sprintf("#!/bin/sh\necho x >>'%s/%s.mark'\nexec '%s/%s' \"$@\"\n", folder,
			name, real, name)
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("etcd")
	if r := runSandbox(t, "up", "--dir", dir, "--binaries", folder); r.code != 1 ||
		!strings.Contains(r.stderr, "kube-apiserver") {
		t.Errorf("without a kube-apiserver: %+v", r)
	}
	write("kube-apiserver")
	up(t, dir, "--binaries", folder)
	before := status(t, dir)
	if !before.Etcd.Ready || !before.APIServer.Ready {
		t.Errorf("not ready: %+v", before)
	}
	mustSandbox(t, "restart", "apiserver", "--dir", dir)
	for component, want := range map[string]int{"etcd": 1, "kube-apiserver": 2} {
		if got := strings.Count(readFile(filepath.Join(folder, component+".mark")), "x"); got != want {
			t.Errorf("%s was started %d times from the folder, want %d", component, got, want)
		}
	}
	mustSandbox(t, "down", "--dir", dir)
	assertNothingLeft(t, before)
}
