package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

// TestStats prints counts and distributions in each storage mode.
func TestStats(t *testing.T) {
	server := newIndexedServer(t)
	config := write(t, "c.yaml", gizmoIndexes)
	for _, mode := range []string{"packed", "compressed", "adaptive", "object", "metadata"} {
		r := crdcache(t, "stats", "things", "-A", "--config", config, "--storage", mode, "--top", "1",
			"-s", server.URL)
		if r.code != cli.ExitOK || r.errOut != "" {
			t.Fatalf("%s: exit code %d, stderr %q", mode, r.code, r.errOut)
		}
		if !strings.HasPrefix(r.out, "gizmos.v1.example.com: 4 objects, ") ||
			!strings.Contains(r.out, " in storage mode "+mode+", synced in ") {
			t.Errorf("%s:\n%s", mode, r.out)
		}
		if mode != "packed" {
			continue
		}
		for _, want := range []string{"  color: 2 values in 3 of 4 objects, ",
			"    red       2 ███████████████\n    … 1 more\n", "  namespace: 2 values in 4 of 4 objects, "} {
			if !strings.Contains(r.out, want) {
				t.Errorf("%q is missing in\n%s", want, r.out)
			}
		}
	}
	r := crdcache(t, "stats", "gz", "-A", "-o", "json", "-s", server.URL)
	var reports []struct {
		Objects int
		Bytes   int64
		Indexes []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(r.out), &reports); err != nil {
		t.Fatal(err)
	}
	if len(reports) != 1 || reports[0].Objects != 4 || reports[0].Bytes <= 0 || len(reports[0].Indexes) != 1 {
		t.Errorf("reports are %+v", reports)
	}
	for name, args := range map[string][]string{"no type": {}, "mode": {"gz", "--storage", "x"},
		"top": {"gz", "--top", "-1"}, "output": {"gz", "-o", "yaml"}} {
		t.Run(name, func(t *testing.T) {
			crdcache(t, append([]string{"stats", "-s", server.URL}, args...)...).expect(t, cli.ExitUsage, "")
		})
	}
}
