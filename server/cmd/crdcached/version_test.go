package main

import (
	"runtime"
	"strings"
	"testing"
)

// TestVersion prints the build information.
func TestVersion(t *testing.T) {
	if err := run(t.Context(), []string{"--version"}); err != nil {
		t.Error(err)
	}
	if got := version(); !strings.HasPrefix(got, "crdcached ") || !strings.Contains(got, runtime.Version()) {
		t.Errorf("the version is %q", got)
	}
}
