package cli_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestTypes verifies that types can be separate arguments or comma-separated, under all of their names, and
// that each is printed once.
func TestTypes(t *testing.T) {
	server := newCluster(t)
	server.Create(t, gizmos, newObject("Gizmo", "web", "a", nil))
	server.Create(t, zones, newObject("Zone", "", "z", nil))
	const gizmo, zone = "gizmo.example.com/a\n", "zone.example.com/z\n"
	for args, want := range map[string]string{
		"gizmos":                         gizmo,
		"zones gizmos":                   zone + gizmo,
		"gizmos,zones":                   gizmo + zone,
		"gizmos,zones gizmos":            gizmo + zone,
		"gz Gizmo gizmo gizmos":          gizmo,
		"gizmos.v1.example.com zones":    gizmo + zone,
		"things":                         gizmo + zone,
		"*.example.com":                  gizmo + zone,
		"zones,things,*.example.com,gz":  zone + gizmo,
		"gizmos.example.com,gizmos.exam": gizmo,
	} {
		t.Run(args, func(t *testing.T) {
			line := append([]string{"dump", "-A", "-o", "name", "-s", server.URL}, strings.Fields(args)...)
			crdcache(t, line...).expect(t, cli.ExitOK, want)
		})
	}
}

func TestTables(t *testing.T) {
	server := newCluster(t)
	server.Create(t, gizmos,
		newObject("Gizmo", "web", "b", map[string]any{"color": "red", "size": int64(3)}),
		newObject("Gizmo", "web-2", "c", map[string]any{"color": "blue"}),
		newObject("Gizmo", "web", "a", map[string]any{"size": "three"}))
	server.Create(t, zones, newObject("Zone", "", "z", nil))
	tests := map[string]struct {
		args []string
		want []string
	}{
		"one namespace": {[]string{"gizmos", "-n", "web"}, []string{"NAME COLOR", "a", "b red"}},
		"all": {[]string{"gizmos", "-A"}, []string{"NAMESPACE NAME COLOR", "web-2 c blue",
			"web a", "web b red"}},
		"wide": {[]string{"gizmos", "-n", "web", "-o", "wide"},
			[]string{"NAME COLOR SIZE", "a", "b red 3"}},
		"no headers": {[]string{"gizmos", "-n", "web", "--no-headers"}, []string{"a", "b red"}},
		"two types": {[]string{"gizmos,zones", "-n", "web"}, []string{
			"NAME COLOR", "gizmo.example.com/a", "gizmo.example.com/b red", "", "NAME AGE",
			"zone.example.com/z"}},
		"two types without headers": {[]string{"gizmos,zones", "-n", "web", "--no-headers"}, []string{
			"gizmo.example.com/a", "gizmo.example.com/b red", "zone.example.com/z"}},
		"one of two is empty": {[]string{"gizmos,zones", "-n", "none"},
			[]string{"NAME AGE", "zone.example.com/z"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := crdcache(t, append([]string{"dump", "-s", server.URL}, tt.args...)...)
			var got []string
			for line := range strings.Lines(r.out) {
				got = append(got,
					strings.TrimSuffix(newObjectAge.ReplaceAllString(strings.Join(strings.Fields(line),
						" "), "-"), " -"))
			}
			if r.code != cli.ExitOK || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", tt.want) {
				t.Errorf("exit code %d, lines\n%q, want\n%q\nstderr %q", r.code, got, tt.want, r.errOut)
			}
		})
	}
}

// TestEmpty verifies that commands without objects succeed. Tables print a message on stderr, and lists are
// complete.
func TestEmpty(t *testing.T) {
	server := newCluster(t)
	for name, tt := range map[string]struct {
		args        []string
		out, errOut string
	}{
		"table, all namespaces": {[]string{"gizmos", "-A"}, "", "No resources found\n"},
		"table, one namespace": {[]string{"gizmos", "-n", "web"}, "",
			"No resources found in web namespace.\n"},
		"table, default":        {[]string{"gizmos"}, "", "No resources found in default namespace.\n"},
		"table, cluster-scoped": {[]string{"zones"}, "", "No resources found\n"},
		"wide":                  {[]string{"zones", "-o", "wide"}, "", "No resources found\n"},
		"name":                  {[]string{"zones", "-o", "name"}, "", ""},
		"yaml": {[]string{"zones", "-o", "yaml"},
			"apiVersion: v1\nitems: []\nkind: List\nmetadata:\n  resourceVersion: \"\"\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := crdcache(t, append([]string{"dump", "-s", server.URL}, tt.args...)...)
			r.expect(t, cli.ExitOK, tt.out)
			if r.errOut != tt.errOut {
				t.Errorf("stderr is %q, want %q", r.errOut, tt.errOut)
			}
		})
	}
}

// TestFailuresOfTypes verifies that unreadable types are reported, and the others printed.
func TestFailuresOfTypes(t *testing.T) {
	answer := func(status int) []apitest.Fault {
		return []apitest.Fault{{Path: zonesPath, Status: status, Message: "the server's words"}}
	}
	tests := map[string]struct {
		types  string
		faults []apitest.Fault
		code   int
		errOut string
	}{
		"forbidden": {"zones,gizmos", answer(http.StatusForbidden), cli.ExitForbidden,
			"error: list zones.v1.example.com: the server's words"},
		"unauthorized": {"gizmos,zones", answer(http.StatusUnauthorized), cli.ExitForbidden,
			"error: list zones.v1.example.com: the server's words"},
		"gone meantime": {"zones,gizmos", answer(http.StatusNotFound), cli.ExitFailed,
			"error: list zones.v1.example.com: the server's words"},
		"unknown": {"gizmo,zonez", nil, cli.ExitFailed, "did you mean zones"},
		"not in time": {"zones,gizmos", []apitest.Fault{{Path: zonesPath}}, cli.ExitNotSynced,
			"error: list zones.v1.example.com: not synced: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := newCluster(t)
			server.Create(t, gizmos, newObject("Gizmo", "web", "a", nil))
			server.AddFaults(tt.faults...)
			args := []string{"dump", tt.types, "-A", "-o", "name", "-s", server.URL}
			if tt.code == cli.ExitNotSynced {
				args = append(args, "--timeout", "2s")
			}
			r := crdcache(t, args...)
			r.expect(t, tt.code, "gizmo.example.com/a\n")
			if !strings.Contains(r.errOut, tt.errOut) || strings.Count(r.errOut, "\n") != 1 {
				t.Errorf("stderr is %q, want one line with %q", r.errOut, tt.errOut)
			}
		})
	}
}
