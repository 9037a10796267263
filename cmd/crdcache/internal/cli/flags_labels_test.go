package cli_test

import (
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
)

// TestLabelColumnHeaders: a header is the end of a label's name, and does nothing to a terminal.
func TestLabelColumnHeaders(t *testing.T) {
	file := write(t, "objects.yaml", flagObjects)
	for name, tt := range map[string]struct{ columns, want string }{
		"one":      {"app", "NAMESPACE,NAME,AGE,APP\nweb,a,,shop\nweb,b,,shop\n"},
		"two":      {"app,none", "NAMESPACE,NAME,AGE,APP,NONE\nweb,a,,shop,\nweb,b,,shop,\n"},
		"prefixed": {"example.com/tier", "NAMESPACE,NAME,AGE,TIER\nweb,a,,\nweb,b,,\n"},
		"escape":   {"\x1b[1m", "NAMESPACE,NAME,AGE,\ufffd[1M\nweb,a,,\nweb,b,,\n"},
	} {
		t.Run(name, func(t *testing.T) {
			crdcache(t, "dump", "gizmos", "--from", file, "--quiet", "-o", "csv", "-L", tt.columns).expect(t, exit.OK, tt.want)
		})
	}
}
