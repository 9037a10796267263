package main

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/server"
)

// TestHelp checks that the flags of crdcached are printed before those of the generic server.
func TestHelp(t *testing.T) {
	var out bytes.Buffer
	printHelp(&out, server.NewOptions().Flags())
	previous := -1
	for _, text := range []string{"crdcached caches types", "Crdcached flags:", "--config string",
		"Secure serving flags:", "--secure-port", "Audit flags:", "--audit-log-path"} {
		at := strings.Index(out.String(), text)
		if at <= previous {
			t.Errorf("%q is at position %d, want after %d:\n%s", text, at, previous, out.String())
		}
		previous = at
	}
}

// TestUnknownFlag checks that the error names --help.
func TestUnknownFlag(t *testing.T) {
	if err := run(t.Context(), []string{"--typ", "a"}); err == nil ||
		err.Error() != "unknown flag: --typ; see crdcached --help" {
		t.Errorf("run() = %v, want an error that names --help", err)
	}
}

// TestVersion checks the printed build information.
func TestVersion(t *testing.T) {
	if err := run(t.Context(), []string{"--version"}); err != nil {
		t.Error(err)
	}
	if got := version(); !strings.HasPrefix(got, "crdcached ") || !strings.Contains(got, runtime.Version()) {
		t.Errorf("version() = %q, want the program and the Go version", got)
	}
}
