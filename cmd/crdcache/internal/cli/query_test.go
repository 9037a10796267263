package cli_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	_ "github.com/crdcache/crdcache/adapters/cel" // --where-cel
	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	_ "github.com/crdcache/crdcache/cmd/crdcache/internal/columns"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// gizmoIndexes are indexes for the types of newCluster.
const gizmoIndexes = `
apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: a}
spec:
  resources:
  - name: things
    match: {group: example.com, version: v1, resource: gizmos}
    indexes:
    - {name: color, path: .spec.color}
    - {name: size, path: .spec.size, type: Int, order: Sorted}
`

// newIndexedServer serves four gizmos.
func newIndexedServer(t *testing.T) *apitest.Server {
	t.Helper()
	server := newCluster(t)
	server.Create(t, gizmos,
		newObject("Gizmo", "web", "a", map[string]any{"color": "red", "size": int64(10)}),
		newObject("Gizmo", "web", "b", map[string]any{"color": "blue", "size": int64(9)}),
		newObject("Gizmo", "db", "c", map[string]any{"color": "red", "size": int64(100)}),
		newObject("Gizmo", "db", "d", map[string]any{"size": int64(1)}))
	return server
}

// TestQuery checks results, their order and all output formats.
func TestQuery(t *testing.T) {
	server := newIndexedServer(t)
	config := writeTempFile(t, "c.yaml", gizmoIndexes)
	nulls := writeTempFile(t, "nulls.yaml", strings.NewReplacer("{name: a}", "{name: b}", "things", "nulls", "{name: color,",
		"{name: paint, missing: AsNull,").Replace(gizmoIndexes))
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"equal":     {[]string{"--index", "color=red", "--keys-only"}, "db/c\nweb/a\n"},
		"and":       {[]string{"--index", "color=red", "--index", "size<50", "--keys-only"}, "web/a\n"},
		"not":       {[]string{"--index", "!(color=red)", "--keys-only"}, "db/d\nweb/b\n"},
		"missing":   {[]string{"--index", "!color", "--keys-only"}, "db/d\n"},
		"where":     {[]string{"--where", "@.spec.size > 9", "--keys-only"}, "db/c\nweb/a\n"},
		"sorted":    {[]string{"--sort-by", "size", "--keys-only"}, "db/d\nweb/b\nweb/a\ndb/c\n"},
		"by a path": {[]string{"--sort-by", ".spec.size", "--keys-only"}, "db/d\nweb/b\nweb/a\ndb/c\n"},
		"by paths": {[]string{"--sort-by", "namespace desc, .spec['si ze','size'] desc", "--keys-only"},
			"web/a\nweb/b\ndb/c\ndb/d\n"},
		"count":  {[]string{"--index", "color", "--count"}, "3\n"},
		"nulls":  {[]string{"--config", nulls, "--group-by", "paint"}, "PAINT    COUNT\nred      2\nblue     1\n<none>   1\n"},
		"groups": {[]string{"--group-by", "color"}, "COLOR    COUNT\nred      2\nblue     1\n<none>   1\n"},
		"path groups": {[]string{"--group-by", ".metadata.namespace", "--group-by", ".spec.color", "--index",
			"color=red", "--no-headers"}, "db    red   1\nweb   red   1\n"},
		"both groups": {[]string{"--group-by", ".spec['color', 'a,]b'],namespace", "--index", "color=red",
			"--no-headers"}, "red   db    1\nred   web   1\n"},
		"computed": {[]string{"--group-by", "color", "--compute", "sum(size)", "--compute",
			"avg(.spec.size)"},
			"COLOR    COUNT   SUM(SIZE)   AVG(.SPEC.SIZE)\nred      2       110         55\nblue     1       9           9\n<none>   1       1           1\n"},
		"of all":   {[]string{"--compute", "max(size)"}, "COUNT   MAX(SIZE)\n4       100\n"},
		"contains": {[]string{"--index", "color contains e", "--index", "color=~'^r'", "--count"}, "2\n"},
		"table": {[]string{"--index", "color=red"},
			"NAMESPACE   NAME   COLOR\ndb          c      red\nweb         a      red\n"},
		"names": {[]string{"--index", "color=red", "-o", "name"},
			"gizmo.example.com/c\ngizmo.example.com/a\n"},
		"columns":      {[]string{"--index", "size=9", "-o", "custom-columns=N:.metadata.name"}, "N\nb\n"},
		"a label":      {[]string{"-l", "none=x", "--count"}, "0\n"},
		"no condition": {[]string{"--count"}, "4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, typeName := range []string{"things", "gz"} {
				args := append([]string{"query", typeName, "-A", "--config", config, "-s", server.URL},
					tt.args...)
				crdcache(t, args...).expect(t, cli.ExitOK, tt.want)
			}
		})
	}
	crdcache(t, "query", "gz", "-n", "db", "--config", config, "--index", "color=red", "--keys-only", "-s",
		server.URL).expect(t, cli.ExitOK, "db/c\n")
	crdcache(t, "query", "gz", "-A", "--where", ".spec.color", "--count", "-s", server.URL).expect(t,
		cli.ExitOK, "3\n")
}

// TestQueryWithoutSchema verifies that a query is not compared with the schema, and prints no warning, if the
// CRD is unreadable or has no schema.
func TestQueryWithoutSchema(t *testing.T) {
	for name, status := range map[string]int{"no schema": 0, "forbidden": http.StatusForbidden,
		"failing": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			server := newIndexedServer(t)
			if status != 0 {
				server.AddFaults(
					apitest.Fault{
						Path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gizmos.example.com", Status: status})
			}
			r := crdcache(t, "query", "gz", "-A", "--where", "@.spec.nothing == 1", "--count",
				"-s", server.URL)
			r.expect(t, cli.ExitOK, "0\n")
			if r.errOut != "" {
				t.Errorf("stderr is %q, want empty", r.errOut)
			}
		})
	}
}

// TestQueryErrors verifies that invalid queries are reported with the position before objects are read.
func TestQueryErrors(t *testing.T) {
	server := newIndexedServer(t)
	config := writeTempFile(t, "c.yaml", gizmoIndexes)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"two types":     {[]string{"gz", "zones"}, "got 2 arguments"},
		"category":      {[]string{"things2.*"}, "things2"},
		"syntax":        {[]string{"gz", "--index", "color=="}, "error: --index: "},
		"unknown index": {[]string{"gz", "--config", config, "--index", "colour=red"}, "color"},
		"unsorted":      {[]string{"gz", "--config", config, "--index", "color<red"}, "color"},
		"sort unsorted": {[]string{"gz", "--config", config, "--sort-by", "color"}, "color"},
		"operand":       {[]string{"gz", "--config", config, "--index", "size=many"}, "many"},
		"bad measure": {[]string{"gz", "--config", config, "--compute", "median(size)"},
			"is not a measure; write one of sum"},
		"unknown group": {[]string{"gz", "--config", config, "--group-by", "color,shape"}, "shape"},
		"bad path":      {[]string{"gz", "--config", config, "--group-by", ".spec["}, "--group-by: E102"},
		"bad measure path": {[]string{"gz", "--config", config, "--compute", "sum(.spec[)"},
			"--compute: E102"},
		"no reference": {[]string{"gz", "--config", config, "--dangling="}, "use --dangling alone for all"},
		"other reference": {[]string{"gz", "--config", config, "--dangling=zone"},
			`there is no reference "zone"; there are owners`},
		"bad order":      {[]string{"gz", "--config", config, "--sort-by", "size up"}, "cannot sort by"},
		"where":          {[]string{"gz", "--where", ".spec["}, "E102"},
		"sort by a path": {[]string{"gz", "--sort-by", ".spec[size"}, "--sort-by: E"},
		"sort by braces": {[]string{"gz", "--sort-by", "{.spec.size}"},
			"--sort-by takes a path without braces, as in .spec.replicas; got {.spec.size}"},
		"the only index": {[]string{"gz", "--index", "size=3"},
			`there is no index "size"; the only one is namespace; declare indexes with --config`},
		"token": {[]string{"gz", "--config", config, "--sort-by", "size", "--limit", "1",
			"--continue", "x"}, "continue token"},
		"count of a page": {[]string{"gz", "--count", "--limit", "1"}, "--count uses all objects"},
	} {
		t.Run(name, func(t *testing.T) {
			r := crdcache(t, append([]string{"query", "-s", server.URL}, tt.args...)...)
			if name == "category" {
				r.expect(t, cli.ExitFailed, "")
			} else {
				r.expect(t, cli.ExitUsage, "")
			}
			if !strings.Contains(r.errOut, tt.want) {
				t.Errorf("stderr is %q, want %q in it", r.errOut, tt.want)
			}
		})
	}
}

// TestQueryDangling verifies that a query for dangling references also reads the referenced types.
func TestQueryDangling(t *testing.T) {
	server := newIndexedServer(t)
	config := writeTempFile(t, "c.yaml", gizmoIndexes+`    references:
    - {name: zone, to: {group: example.com, kind: Zone, namePath: .spec.color}}
    - {name: none, to: {group: example.com, kind: Nothing, namePath: .spec.color}}
`)
	server.Create(t, zones, newObject("Zone", "", "blue", nil))
	args := []string{"query", "gz", "-A", "--config", config, "-s", server.URL}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"any":            {[]string{"--dangling", "--keys-only"}, "db/c\nweb/a\n"},
		"by name":        {[]string{"--dangling=zone", "--index", "size<50", "--keys-only"}, "web/a\n"},
		"owners":         {[]string{"--dangling=owners", "--count"}, "0\n"},
		"no such type":   {[]string{"--dangling=none", "--count"}, "0\n"},
		"in a condition": {[]string{"--index", "color && !dangling(zone)", "--keys-only"}, "web/b\n"},
		"refers":         {[]string{"--index", "refersTo(zones.example.com, blue)", "--keys-only"}, "web/b\n"},
		"referred":       {[]string{"--index", "referredBy(Zone.example.com, blue)", "--count"}, "0\n"},
		"groups":         {[]string{"--dangling", "--group-by", "color", "--no-headers"}, "red   2\n"},
	} {
		t.Run(name, func(t *testing.T) {
			r := crdcache(t, append(args, tt.args...)...)
			r.expect(t, cli.ExitOK, tt.want)
			checked := slices.Contains(tt.args, "--dangling") || slices.Contains(tt.args, "--dangling=none")
			if warned := strings.Contains(r.errOut,
				"references to Nothing.example.com are not checked: the server has no such type"); warned != checked {
				t.Errorf("stderr is %q, want a note about unchecked references only for such queries",
					r.errOut)
			}
		})
	}
	crdcache(t, "query", "gz", "-n", "db", "--config", config, "--dangling=zone", "--keys-only", "-s",
		server.URL).expect(t, cli.ExitOK, "db/c\n")
	r := crdcache(t, append(args, "--dangling=zone", "--explain")...)
	if r.code != cli.ExitOK || !strings.Contains(r.out, "start  dangling(zone): at most 2 of 4 objects") {
		t.Errorf("the command printed %q, want a plan that starts with dangling references", r.out)
	}
}

// TestQueryWarnings verifies that warnings about results are printed to stderr.
func TestQueryWarnings(t *testing.T) {
	server := newIndexedServer(t)
	config := writeTempFile(t, "c.yaml", strings.Replace(gizmoIndexes, "type: Int, ", "", 1))
	for _, args := range [][]string{{"--count"}, {"--keys-only"}, {"--group-by", "color"}} {
		r := crdcache(t, append([]string{"query", "gz", "-A", "--config", config, "--index", "size<50", "-s",
			server.URL}, args...)...)
		if r.code != cli.ExitOK || !strings.Contains(r.errOut,
			`warning: index "size" has no type and compares 50 as text; declare type: Number`) {
			t.Errorf("%v: stderr is %q, want a warning about the type", args, r.errOut)
		}
	}
	r := crdcache(t, "query", "gz", "-A", "--config", config, "--compute", "sum(.spec.color)",
		"-s", server.URL)
	r.expect(t, cli.ExitOK, "COUNT   SUM(.SPEC.COLOR)\n4       <none>\n")
	if !strings.Contains(r.errOut, "values that are not numbers were skipped: 3") {
		t.Errorf("stderr is %q, want the number of skipped values", r.errOut)
	}
}

// TestQueryByPaths verifies that a query can sort, group and compute by paths without a config.
func TestQueryByPaths(t *testing.T) {
	server := newIndexedServer(t)
	args := []string{"query", "gz", "-A", "-s", server.URL}
	sorted := append(args, "--sort-by", ".spec.color desc,.spec.size", "--keys-only")
	want := crdcache(t, sorted...).out
	got, token := "", ""
	for page := 0; page < 4; page++ {
		one := append(slices.Clone(sorted), "--limit", "1")
		if token != "" {
			one = append(one, "--continue", token)
		}
		r := crdcache(t, one...)
		got += r.out
		_, token, _ = strings.Cut(strings.TrimSpace(r.errOut), "--continue ")
	}
	if got != want || strings.Count(want, "\n") != 4 || token != "" {
		t.Errorf("page by page\n%s\nat once\n%s", got, want)
	}
	crdcache(t, append(args, "--group-by", ".spec.color", "--compute", "max(.spec.size)", "-o", "csv",
		"--no-headers")...).expect(t, cli.ExitOK, "red,2,100\nblue,1,9\n,1,1\n")
}
