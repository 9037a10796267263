package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// createOwned creates an object with a condition Ready and with owners, which must exist.
func createOwned(t *testing.T, server *apitest.Server, u *unstructured.Unstructured, readyStatus string,
	owners ...string) {
	t.Helper()
	types := map[string]schema.GroupVersionResource{"Gizmo": gizmos, "Zone": zones}
	var all []metav1.OwnerReference
	for _, owner := range owners {
		kind, name, _ := strings.Cut(owner, "/")
		var from dynamic.ResourceInterface = server.Client(t).Resource(types[kind])
		if kind == "Gizmo" {
			from = server.Client(t).Resource(gizmos).Namespace(u.GetNamespace())
		}
		object, err := from.Get(t.Context(), name, metav1.GetOptions{})
		must(t, err)
		all = append(all, metav1.OwnerReference{APIVersion: "example.com/v1", Kind: kind, Name: name,
			UID: object.GetUID()})
	}
	if len(owners) > 0 {
		u.SetOwnerReferences(all)
	}
	if readyStatus != "" {
		u.Object["status"] = map[string]any{"conditions": []any{
			map[string]any{"type": "Odd", "status": "True"}, map[string]any{"type": "Ready", "status": readyStatus,
				"reason": "Because"},
		}}
	}
	server.Create(t, types[u.GetKind()], u)
}

const treeConfig = `apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: gizmos}
spec:
  resources:
  - name: machines
    match: {group: example.com, kind: Gizmo}
    references:
    - {name: zone, to: {group: example.com, kind: Zone, namePath: .spec.zone}}
    - {name: spare, to: {group: example.com, kind: Nothing, namePath: .spec.spare}}
`

// newTreeServer returns a server of objects with owners and references. north owns a, which owns b and c. c
// refers to a missing zone. d in another namespace refers to north. The owner of e has b's name and another
// UID.
func newTreeServer(t *testing.T) *apitest.Server {
	t.Helper()
	server := newCluster(t)
	createOwned(t, server, newObject("Zone", "", "north", nil), "True")
	createOwned(t, server, newObject("Gizmo", "web", "a", nil), "False", "Zone/north")
	createOwned(t, server, newObject("Gizmo", "web", "b", nil), "", "Gizmo/a")
	createOwned(t, server, newObject("Gizmo", "web", "c", map[string]any{"zone": "south", "spare": "x"}), "",
		"Gizmo/a")
	createOwned(t, server, newObject("Gizmo", "db", "d", map[string]any{"zone": "north"}), "")
	createOwned(t, server, newObject("Gizmo", "db", "b", nil), "")
	e := newObject("Gizmo", "web", "e", nil)
	e.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Gizmo", Name: "b",
		UID: "another"}})
	createOwned(t, server, e, "")
	return server
}

// TestTree verifies that tree prints owners, dependents, references and missing objects, and the types that
// were not read.
func TestTree(t *testing.T) {
	server := newTreeServer(t)
	config := writeTempFile(t, "c.yaml", treeConfig)
	tests := map[string]struct {
		args []string
		code int
		out  string
		err  string
	}{
		"in the middle": {[]string{"gizmo/a", "-n", "web"}, cli.ExitOK, `
web  Gizmo/a        -          Ready=False  Because  -
-    ├─Zone/north   owner      Ready=True   Because  -
web  ├─Gizmo/b      dependent  -            -        -
web  └─Gizmo/c      dependent  -            -        -
`, "in the namespace web"},
		"type and name": {[]string{"gz", "b", "-n", "web"}, cli.ExitOK, `
web  Gizmo/b          -      -            -        -
web  └─Gizmo/a        owner  Ready=False  Because  -
-      └─Zone/north   owner  Ready=True   Because  -
`, "omitted dependents of Gizmo web/b, because their owner has another UID: 1 object"},
		"root": {[]string{"zones/north", "--types", "gizmos"}, cli.ExitOK, `
-    Zone/north     -          Ready=True   Because  -
web  └─Gizmo/a      dependent  Ready=False  Because  -
web    ├─Gizmo/b    dependent  -            -        -
web    └─Gizmo/c    dependent  -            -        -
`, "read 2 types in all namespaces; did not read types that --types does not name"},
		"references": {[]string{"zones/north", "--config", config}, cli.ExitOK, `
-    Zone/north         -                    Ready=True   Because  -
web  ├─Gizmo/a          dependent            Ready=False  Because  -
web  │ ├─Gizmo/b        dependent            -            -        -
web  │ └─Gizmo/c        dependent            -            -        -
-    │   └─Zone/south   referred to (zone)    missing      -        -
db   └─Gizmo/d          refers to it (zone)  -            -        -
`, "in all namespaces"},
		"unknown type": {[]string{"machines/c", "-n", "web", "--config", config, "--types", "machines"}, cli.ExitOK, `
web  Gizmo/c        -                  -            -        -
web  ├─Gizmo/a      owner              Ready=False  Because  -
web  │ └─Zone/north owner              not read     -        -
web  ├─Nothing/x    referred to (spare) not read     -        -
web  └─Zone/south   referred to (zone)  not read     -        -
`, "warning: references from other namespaces than web are omitted"},
		"missing owner": {[]string{"gizmo/e", "-n", "web"}, cli.ExitOK, `
web  Gizmo/e     -      -        -  -
web  └─Gizmo/b   owner  missing  -  -
`, ""},
		"everywhere": {[]string{"gizmo/b", "-A", "--depth", "1"}, cli.ExitOK, `
db   Gizmo/b      -      -            -        -
web  Gizmo/b      -      -            -        -
web  └─Gizmo/a    owner  Ready=False  Because  -
-      └─… 1 more (--depth)  -  -  -  -
`, ""},
		"limit": {[]string{"gizmo/a", "-n", "web", "--limit", "2"}, cli.ExitOK, `
web  Gizmo/a        -          Ready=False  Because  -
-    ├─Zone/north   owner      Ready=True   Because  -
web  ├─Gizmo/b      dependent  -            -        -
-    └─… 1 more (--limit)  -  -  -  -
`, ""},
		"absent": {[]string{"gizmo/nope", "-n", "web"}, cli.ExitFailed, "\n",
			`error: gizmos.example.com "nope" not found`},
		"types absent": {[]string{"zone/north", "--types", "nope"}, cli.ExitFailed,
			"\n-    Zone/north     -          Ready=True   Because  -\n", `error: `},
		"two objects": {[]string{"zone/north", "zone/south"}, cli.ExitUsage, "\n", "name one object, as in"},
		"a type":      {[]string{"zones"}, cli.ExitUsage, "\n", "name one object, as in"},
		"deep": {[]string{"zone/north", "--depth", "1000"}, cli.ExitUsage, "\n",
			"--depth is 1000: give a number from 1 to 100"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := crdcache(t, append([]string{"tree", "--no-headers", "-s", server.URL}, tt.args...)...)
			if r.code != tt.code ||
				trimSpaces(newObjectAge.ReplaceAllString(r.out, "-")) != trimSpaces(tt.out) ||
				!strings.Contains(r.errOut, tt.err) {
				t.Errorf("exit code %d, want %d; stdout\n%s\nwant%s\nstderr %s", r.code, tt.code, r.out,
					tt.out, r.errOut)
			}
		})
	}
}

func trimSpaces(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimPrefix(text, "\n")) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// TestTreeForbidden verifies that types that cannot be read are reported, with their exit code.
func TestTreeForbidden(t *testing.T) {
	server := newTreeServer(t)
	server.AddFaults(apitest.Fault{Path: "/apis/example.com/v1/namespaces/web/gizmos",
		Status: http.StatusForbidden, Message: "eve may not"})
	server.AddFaults(apitest.Fault{Path: gizmosPath, Status: http.StatusForbidden, Message: "eve may not"})
	r := crdcache(t, "tree", "zone/north", "-o", "json", "-s", server.URL)
	if r.code != cli.ExitForbidden ||
		!strings.Contains(r.errOut,
			"error: the tree is incomplete, because types could not be read: gizmos.example.com: may not be read (select types with --types)\n") {
		t.Errorf("exit code %d, want %d; stderr %s", r.code, cli.ExitForbidden, r.errOut)
	}
	var record struct {
		Trees   []struct{ Name string }
		Read    []string
		NotRead []struct{ Type, Reason string }
	}
	must(t, json.Unmarshal([]byte(r.out), &record))
	if got := fmt.Sprint(record); !strings.Contains(got, "{[{north}] [") ||
		!strings.Contains(got, "{gizmos.example.com may not be read}") {
		t.Errorf("the record is %s, want the parent north and the error of gizmos", got)
	}
	r = crdcache(t, "tree", "zone/north", "--types", "zones", "--no-headers", "-s", server.URL)
	r.out = newObjectAge.ReplaceAllString(r.out, "-")
	r.expect(t, cli.ExitOK, "-     Zone/north   -     Ready=True   Because   -\n")
}
