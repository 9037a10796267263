package cli_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

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
			args := []string{"dump", tt.types, "-A", "-o", "name", "-s", server.URL, "--timeout"}
			r, timeout := result{}, 5*time.Minute
			if tt.code == cli.ExitNotSynced {
				timeout = 2 * time.Second
			}
			for ; r.out == "" && timeout < time.Hour; timeout *= 2 { // a busy machine may need more
				r = crdcache(t, append(args, timeout.String())...)
			}
			r.expect(t, tt.code, "gizmo.example.com/a\n")
			if !strings.Contains(r.errOut, tt.errOut) || strings.Count(r.errOut, "\n") != 1 {
				t.Errorf("stderr is %q, want one line with %q", r.errOut, tt.errOut)
			}
		})
	}
}

// TestOneTypeWithoutObjects verifies that each format has the named objects of one type if those of another
// type do not exist.
func TestOneTypeWithoutObjects(t *testing.T) {
	server := newCluster(t)
	server.Create(t, gizmos, newObject("Gizmo", "web", "a", nil))
	for _, format := range hostileFormats {
		r := crdcache(t, "dump", "zone/none", "gizmo/a", "-n", "web", "-s", server.URL, "-o", format)
		if r.code != cli.ExitFailed || r.errOut != "error: zones.example.com \"none\" not found\n" || r.out == "" {
			t.Errorf("-o %s: %+v, want one object and an error", format, r)
		}
	}
}

// TestDumpNamed verifies that dump gets named objects without a list, and prints them as kubectl get does.
func TestDumpNamed(t *testing.T) {
	server := newCluster(t)
	for i, name := range []string{"a", "b", "c"} {
		server.Create(t, gizmos, newObject("Gizmo", "web", name,
			map[string]any{"color": "red", "size": int64(9 - i)}))
	}
	server.Create(t, zones, newObject("Zone", "", "north", nil))
	const a = "NAME   COLOR\na      red\n"
	tests := map[string]struct {
		args []string
		code int
		out  string
		err  string
	}{
		"type and name": {[]string{"gizmos", "a"}, cli.ExitOK, a, ""},
		"type/name":     {[]string{"gz/a"}, cli.ExitOK, a, ""},
		"two": {[]string{"gizmos", "b", "a", "-o", "name"}, cli.ExitOK,
			"gizmo.example.com/b\ngizmo.example.com/a\n", ""},
		"two types": {[]string{"zone/north", "gizmo/a", "-o", "name"}, cli.ExitOK,
			"zone.example.com/north\ngizmo.example.com/a\n", ""},
		"template": {[]string{"gizmos", "a", "-o", "jsonpath={.spec.size}"}, cli.ExitOK, "9", ""},
		"template of two": {[]string{"gizmos", "a", "b", "-o", "jsonpath={.items[*].spec.size}"},
			cli.ExitOK, "9 8", ""},
		"ordered": {[]string{"gizmos", "a", "b", "-o", "name", "--sort-by", ".spec.size"},
			cli.ExitOK, "gizmo.example.com/b\ngizmo.example.com/a\n", ""},
		"absent": {[]string{"gizmos", "nope"}, cli.ExitFailed, "",
			"error: gizmos.example.com \"nope\" not found\n"},
		"one absent": {[]string{"gizmos", "a", "nope"}, cli.ExitFailed, a,
			"error: gizmos.example.com \"nope\" not found\n"},
		"absent, no matter":  {[]string{"gizmos", "nope", "--ignore-not-found"}, cli.ExitOK, "", ""},
		"nothing, no matter": {[]string{"gizmos", "--ignore-not-found", "-n", "empty"}, cli.ExitOK, "", ""},
		"type was meant": {[]string{"gizmos", "zoness"}, cli.ExitFailed, "",
			"did you mean zones.example.com?"},
		"all namespaces": {[]string{"gizmos", "a", "-A"}, cli.ExitUsage, "",
			"objects in all namespaces cannot be named"},
		"selector": {[]string{"gizmos", "a", "-l", "x=y"}, cli.ExitUsage, "",
			"names and selectors cannot be used together"},
		"several types": {[]string{"things/a"}, cli.ExitUsage, "", `"things" matches 2 types`},
		"not a name of types": {[]string{"zones", "system:x"}, cli.ExitFailed, "",
			`error: zones.example.com "system:x" not found`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			requestsBefore := len(server.Requests())
			args := append([]string{"dump", "-s", server.URL}, tt.args...)
			if !slices.Contains(args, "-A") && !slices.Contains(args, "-n") {
				args = append(args, "-n", "web")
			}
			r := crdcache(t, args...)
			r.expect(t, tt.code, tt.out)
			if !strings.Contains(r.errOut, tt.err) || tt.err == "" && r.errOut != "" {
				t.Errorf("stderr is %q, want %q", r.errOut, tt.err)
			}
			for _, request := range server.Requests()[requestsBefore:] {
				if strings.HasPrefix(request, "list ") && !strings.Contains(request, "/empty/") {
					t.Errorf("unexpected requests: %s", request)
				}
			}
		})
	}
}
