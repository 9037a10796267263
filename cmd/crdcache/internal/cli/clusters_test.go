package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// writeKubeconfig writes a kubeconfig with a context for each server, and returns the flag that reads it.
func writeKubeconfig(t *testing.T, servers map[string]string) string {
	t.Helper()
	var contexts, clusters strings.Builder
	for name, server := range servers {
		fmt.Fprintf(&contexts, "- {name: %q, context: {cluster: %[1]q}}\n", name)
		fmt.Fprintf(&clusters, "- {name: %q, cluster: {server: %q}}\n", name, server)
	}
	text := "apiVersion: v1\nkind: Config\ncontexts:\n" + contexts.String() + "clusters:\n" + clusters.String()
	return "--kubeconfig=" + writeTempFile(t, "config", text)
}

// newKubeconfig writes a kubeconfig with two clusters with gizmos, one that cannot be reached and one that
// denies access. It returns the flag that reads it.
func newKubeconfig(t *testing.T) string {
	t.Helper()
	denied := newGuardedServer(t, func(*http.Request) bool { return false })
	servers := map[string]string{"gone": "http://127.0.0.1:1", "denied": denied.URL}
	for name, colors := range map[string][]string{"prod-a": {"red", "blue", "red"}, "prod-b": {"red", "green"}} {
		server := newCluster(t)
		for i, color := range colors {
			server.Create(t, gizmos, newObject("Gizmo", "web", fmt.Sprintf("g%d", i),
				map[string]any{"color": color,
					"size": int64(10 * i)}))
		}
		servers[name] = server.URL
	}
	return writeKubeconfig(t, servers)
}

const (
	incompletePrefix = "error: the output is incomplete, because of errors in "
	goneMessage      = "gone: cannot reach the API server at http://127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused\n"
)

// TestClusters verifies the exit codes and the output of the verbs with several contexts.
func TestClusters(t *testing.T) {
	config := newKubeconfig(t)
	const denied = "denied: get /api: eve may not\nwarning: denied: get /apis: eve may not\n"
	tests := map[string]struct {
		args        string
		code        int
		out, errOut string
	}{
		"table": {"dump gizmos -A --contexts prod-b,prod-*", cli.ExitOK,
			"CLUSTER NAMESPACE NAME COLOR\nprod-b web g0 red\nprod-b web g1 green\n" +
				"prod-a web g0 red\nprod-a web g1 blue\nprod-a web g2 red\n", ""},
		"one context": {"dump gizmos -n web --contexts prod-b -l none", cli.ExitOK, "",
			"No resources found in web namespace.\n"},
		"partial failure": {"dump gizmos g0 -n web --all-contexts -o name", cli.ExitIncomplete,
			"prod-a gizmo.example.com/g0\nprod-b gizmo.example.com/g0\n",
			"warning: " + denied + "warning: " + goneMessage + incompletePrefix +
				"2 of 4 clusters: denied, gone\n"},
		"all fail": {"dump gizmos --contexts gone,denied", cli.ExitForbidden, "",
			"error: denied: get /api: eve may not\nerror: denied: get /apis: eve may not\nerror: " +
				goneMessage},
		"quiet": {"dump gizmos -n web --contexts gone,prod-b --quiet --no-headers", cli.ExitIncomplete,
			"prod-b web g0 red\nprod-b web g1 green\n", incompletePrefix + "1 of 2 clusters: gone\n"},
		"csv": {"dump gizmos -n web --contexts prod-b -o csv", cli.ExitOK,
			"CLUSTER,NAMESPACE,NAME,COLOR,SIZE\nprod-b,web,g0,red,0\nprod-b,web,g1,green,10\n", ""},
		"custom columns": {"dump gizmos -A --contexts prod-* -o custom-columns=N:.metadata.name -l !none --sort-by=.spec.size",
			cli.ExitOK, "CLUSTER N\nprod-a g0\nprod-a g1\nprod-a g2\nprod-b g0\nprod-b g1\n", ""},
		"no objects in custom columns": {"dump gizmos -A --contexts prod-b -l none -o custom-columns=N:.metadata.name",
			cli.ExitOK, "CLUSTER N\n", ""},
		"annotation": {`dump gizmos g1 -n web --contexts prod-* -o jsonpath={.items[*].metadata.annotations.crdcache\.dev/cluster}`,
			cli.ExitOK, "prod-a prod-b", ""},
		"query": {"query gizmos -A --contexts prod-* --where .spec.color=='red' --sort-by .spec.size", cli.ExitOK,
			"CLUSTER NAMESPACE NAME COLOR\nprod-a web g0 red\nprod-a web g2 red\nprod-b web g0 red\n", ""},
		"groups": {"query gizmos -A --contexts prod-* --group-by .spec.color", cli.ExitOK,
			"CLUSTER .SPEC.COLOR COUNT\nprod-a red 2\nprod-a blue 1\nprod-b green 1\nprod-b red 1\n", ""},
		"counts": {"query gizmos -A --contexts gone,prod-* --count", cli.ExitIncomplete,
			"CLUSTER COUNT\nprod-a 3\nprod-b 2\n", "warning: " + goneMessage + incompletePrefix +
				"1 of 3 clusters: gone\n"},
		"page within a cluster": {"query gizmos -A --contexts prod-b,prod-a --limit 1 --keys-only", cli.ExitOK,
			"prod-b web/g0\n", "prod-b: there is more: --continue prod-b/TOKEN\n"},
		"page of a whole cluster": {"query gizmos -A --contexts prod-* --limit 3 --keys-only", cli.ExitOK,
			"prod-a web/g0\nprod-a web/g1\nprod-a web/g2\n", "prod-b: there is more: --continue prod-b/\n"},
		"next page": {"query gizmos -A --contexts prod-* --limit 3 --keys-only --continue prod-b/", cli.ExitOK,
			"prod-b web/g0\nprod-b web/g1\n", ""},
		"page of all": {"query gizmos -A --contexts prod-* --limit 5 -o name", cli.ExitOK, "prod-a gizmo.example.com/g0\n" +
			"prod-a gizmo.example.com/g1\nprod-a gizmo.example.com/g2\nprod-b gizmo.example.com/g0\nprod-b gizmo.example.com/g1\n", ""},
		"foreign page": {"query gizmos -A --contexts prod-a --limit 3 --continue prod-b/", cli.ExitUsage, "",
			"error: --continue: the token is from another query or cluster: repeat the query and the contexts that printed it\n"},
		"unknown index": {"query gizmos --contexts prod-* --index nope", cli.ExitUsage, "",
			"error: query:1: there is no index \"nope\"; the only one is namespace; declare indexes with --config, or use --where or a path\n"},
		"resources": {"resources gizmos --contexts gone,prod-*", cli.ExitIncomplete,
			"CLUSTER NAME KIND SCOPE VERSIONS STATE\nprod-a gizmos.example.com Gizmo Namespaced v1 Served\n" +
				"prod-b gizmos.example.com Gizmo Namespaced v1 Served\n",
			"warning: " + goneMessage + incompletePrefix + "1 of 3 clusters: gone\n"},
		"tree": {"tree gizmo/g2 -n web --contexts prod-* --types gizmos", cli.ExitIncomplete,
			"CLUSTER NAMESPACE NAME RELATION STATE REASON AGE\nprod-a web Gizmo/g2 - - - AGE\n",
			"prod-a: read 1 type in the namespace web; did not read types that --types does not name\n" +
				"warning: prod-b: gizmos.example.com \"g2\" not found\n" + incompletePrefix +
				"1 of 2 clusters: prod-b\n"},
		"no match": {"dump gizmos --contexts prod-*,x*", cli.ExitUsage, "",
			"error: no context of the kubeconfig matches \"x*\"; it has denied, gone, prod-a, prod-b\n"},
		"two selections": {"dump gizmos --contexts a --context b", cli.ExitUsage, "",
			"error: --context cannot be used with --contexts or --all-contexts: each context has its cluster\n"},
		"empty": {"dump gizmos --contexts=", cli.ExitUsage, "",
			"error: --contexts is empty: is a shell variable unset?\n"},
	}
	age, token := regexp.MustCompile(` \d+s\n`), regexp.MustCompile(`(prod-b/)\w+`)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := crdcache(t, append(strings.Fields(tt.args), config)...)
			// the clusters warn in any order
			errOut := slices.Sorted(strings.Lines(token.ReplaceAllString(r.errOut, "${1}TOKEN")))
			if r.code != tt.code || age.ReplaceAllString(collapseSpaces(r.out), " AGE\n") != tt.out ||
				!slices.Equal(errOut, slices.Sorted(strings.Lines(tt.errOut))) {
				t.Errorf("exit code %d, want %d; stdout:\n%sstderr:\n%s", r.code, tt.code, r.out, r.errOut)
			}
		})
	}
}

// TestSnapshotClusters checks that several clusters are saved in their own files, and that two are compared.
func TestSnapshotClusters(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	config := newKubeconfig(t)
	dir := t.TempDir()
	r := crdcache(t, "snapshot", "save", filepath.Join(dir, "{cluster}.snapshot"), "gizmos", "--all-contexts", config)
	r.expect(t, cli.ExitIncomplete, "")
	snapshotPath := filepath.Join(dir, "prod-a.snapshot")
	crdcache(t, "dump", "gizmos", "--from", snapshotPath, "-o", "name").expect(t, cli.ExitOK,
		"gizmo.example.com/g0\ngizmo.example.com/g1\ngizmo.example.com/g2\n")
	crdcache(t, "snapshot", "save", snapshotPath, "gizmos", "--contexts", "prod-*", config).expect(t,
		cli.ExitUsage, "")

	const differences = "gizmos.example.com: 0 added, 1 removed, 1 changed\n- web/g2\n~ web/g1\n" +
		"  ~ .spec.color: \"blue\" → \"green\"\n"
	for args, want := range map[string]string{
		"context:prod-a context:prod-b gz":             differences,
		snapshotPath + " context:prod-b":               differences,
		"context:prod-b context:prod-b":                "",
		"context:prod-a context:prod-b apiservices":    "",
		"context:prod-a context:prod-b --ignore .spec": "gizmos.example.com: 0 added, 1 removed, 0 changed\n- web/g2\n",
	} {
		code := cli.ExitOK
		if want != "" {
			code = cli.ExitFailed // differences
		}
		crdcache(t, append([]string{"diff", config}, strings.Fields(args)...)...).expect(t, code, want)
	}
	for args, want := range map[string]string{
		"context:prod-a context:no":   `no context of the kubeconfig matches "no"`,
		"context:prod-a context:gone": "cannot reach the API server at http://127.0.0.1:1",
	} {
		r := crdcache(t, append([]string{"diff", config}, strings.Fields(args)...)...)
		if r.code != cli.ExitUsage || !strings.Contains(r.errOut, want) {
			t.Errorf("%s: exit code %d, stderr %q, want %q in it", args, r.code, r.errOut, want)
		}
	}
}

// TestWatchClusters checks that a watch prints the changes of all clusters in one table. A cluster that
// cannot be reached does not delay it.
func TestWatchClusters(t *testing.T) {
	a, b := newCluster(t), newCluster(t)
	a.Create(t, gizmos, newObject("Gizmo", "web", "one", map[string]any{"color": "red"}))
	config := writeKubeconfig(t, map[string]string{"a": a.URL, "b": b.URL, "gone": "http://127.0.0.1:1"})
	w := watchGizmos(t, "gizmos", "-A", "--all-contexts", config)
	w.expect("EVENT CLUSTER NAMESPACE NAME COLOR", "ADDED a web one red")
	b.Create(t, gizmos, newObject("Gizmo", "web", "two", map[string]any{"color": "blue"}))
	w.expect("ADDED b web two blue")
	a.Delete(t, gizmos, "web", "one")
	w.expect("DELETED a web one red")
	w.interrupt()
	w = watchGizmos(t, "gizmos", "-A", "--contexts", "b", "-o", "json", config)
	if line := w.nextLine(); !strings.HasPrefix(line, `{"cluster":"b","object":{`) {
		t.Errorf("the event is %s, want the cluster in it", line)
	}
	w.interrupt()
}

// collapseSpaces replaces tabs and the padding of columns by one space.
func collapseSpaces(text string) string {
	return regexp.MustCompile(`[ \t]+`).ReplaceAllString(text, " ")
}

// TestCompletion verifies the completion of types, objects, config names, indexes, namespaces and contexts.
// An unreachable server causes no error.
func TestCompletion(t *testing.T) {
	server := newIndexedServer(t)
	config := writeTempFile(t, "c.yaml", gizmoIndexes)
	kubeconfig := writeTempFile(t, "kubeconfig",
		`{"apiVersion":"v1","kind":"Config","contexts":[{"name":"one","context":{}},{"name":"two","context":{}}]}`)
	inContext := writeTempFile(t, "in-context", fmt.Sprintf(`{"apiVersion":"v1","kind":"Config",
		"clusters":[{"name":"c","cluster":{"server":%q}}],
		"contexts":[{"name":"db","context":{"cluster":"c","namespace":"db"}}]}`, server.URL))
	savedSnapshot := filepath.Join(t.TempDir(), "saved")
	if r := crdcache(t, "snapshot", "save", savedSnapshot, "gizmos", "-s", server.URL); r.code != cli.ExitOK {
		t.Fatal(r.errOut)
	}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"verbs":  {[]string{"dum"}, "dump\t"},
		"types":  {[]string{"dump", "-s", server.URL, "gi"}, "gizmos.example.com\n:4"},
		"second": {[]string{"dump", "-s", server.URL, "gizmos.example.com", "zo"}, "zones.example.com\n:4"},
		"list": {[]string{"dump", "-s", server.URL, "zones.example.com,gi"},
			"zones.example.com,gizmos.example.com\n:4"},
		"no repeat": {[]string{"dump", "-s", server.URL, "gizmos.example.com,gi"}, ":4"},
		"no list":   {[]string{"query", "-s", server.URL, "zones.example.com,gi"}, ":4"},
		"one only":  {[]string{"query", "-s", server.URL, "gizmos.example.com", ""}, ":4"},
		"names":     {[]string{"query", "-s", server.URL, "--config", config, "th"}, "things\n:4"},
		"indexes":   {[]string{"query", "things", "--config", config, "--index", ""}, "color=\nsize=\n:6"},
		"sort":      {[]string{"query", "things", "--config", config, "--sort-by", ""}, "size\n:4"},
		"objects":   {[]string{"dump", "-s", server.URL, "gz", "-n", "web", ""}, "a\nb\n:4"},
		"another":   {[]string{"dump", "-s", server.URL, "gizmos", "-n", "web", "a", ""}, "b\n:4"},
		"slash":     {[]string{"dump", "-s", server.URL, "-n", "db", "gizmos/c", "gizmos/"}, "gizmos/d\n:4"},
		"resource": {[]string{"dump", "-s", server.URL, "-n", "db", "--config", config, "things", ""},
			"c\nd\n:4"},
		"tree":      {[]string{"tree", "-s", server.URL, "gizmo", "-n", "db", ""}, "c\nd\n:4"},
		"tree done": {[]string{"tree", "-s", server.URL, "gizmo", "-n", "db", "c", ""}, ":4"},
		"context":   {[]string{"dump", "--kubeconfig", inContext, "--context", "db", "gizmos", ""}, "c\nd\n:4"},
		"saved":     {[]string{"dump", "--from", savedSnapshot, "-n", "web", "gizmos", ""}, "a\nb\n:4"},
		"manifests": {[]string{"tree", "--from", demoData + "/objects", "-n", "edge", "workloads/d"},
			"workloads/dns\n:4"},
		"snapshot": {[]string{"dump", "--from", savedSnapshot, "gi"}, "gizmos.example.com\n:4"},
		"contexts": {[]string{"dump", "--kubeconfig", kubeconfig, "--context", ""}, "one\ntwo\n:4"},
		"from": {[]string{"dump", "--from", demoData + "/crds", "--from", demoData + "/objects", "wor"},
			"workloads.demo.crdcache.dev\n:4"},
		"no server": {[]string{"dump", "-s", "http://127.0.0.1:1", ""}, ":4"},
		"namespace": {[]string{"dump", "--from", demoData + "/objects", "-n", "pay"}, "payments\n:4"},
	} {
		t.Run(name, func(t *testing.T) {
			r := crdcache(t, append([]string{"__complete"}, tt.args...)...)
			if r.code != cli.ExitOK || !strings.HasPrefix(r.out, tt.want) {
				t.Errorf("exit code %d, completions\n%swant\n%s", r.code, r.out, tt.want)
			}
		})
	}
	for want, args := range map[string][]string{
		`unknown command "tcsh" for "crdcache completion"`: {"completion", "tcsh"},
		`'crdcache completion bash' takes no arg`:          {"completion", "bash", "x"},
		`unknown command "tcsh" for "crdcache"`:            {"help", "tcsh"},
		`unknown command "x" for "crdcache dump"`:          {"help", "dump", "x"},
	} {
		if r := crdcache(t, args...); r.code != cli.ExitUsage || r.out != "" ||
			!strings.Contains(r.errOut, want) {
			t.Errorf("%q: exit code %d, stderr %q; want %q", args, r.code, r.errOut, want)
		}
	}
	for _, args := range [][]string{{"help"}, {"help", "dump"}, {"help", "completion", "bash"},
		{"completion"}} {
		if r := crdcache(t, args...); r.code != cli.ExitOK || !strings.Contains(r.out, "Usage:") {
			t.Errorf("%q: exit code %d, want %d; stderr %q", args, r.code, cli.ExitOK, r.errOut)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if r := crdcache(t, "completion", shell); r.code != cli.ExitOK || !strings.Contains(r.out, "crdcache") {
			t.Errorf("%s: exit code %d, want %d", shell, r.code, cli.ExitOK)
		}
	}
}

// TestCompletionReadsMetadata checks that completion reads only metadata, and gives up on an unresponsive
// server after some seconds.
func TestCompletionReadsMetadata(t *testing.T) {
	server := newIndexedServer(t)
	target, err := url.Parse(server.URL)
	must(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		accept := r.Header.Get("Accept")
		if strings.HasSuffix(r.URL.Path, "/gizmos") &&
			!strings.Contains(accept, "as=PartialObjectMetadataList") {
			t.Errorf("%s was requested as %q, want only metadata", r.URL, accept)
		}
		forward.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	args := []string{"__complete", "dump", "-s", proxy.URL, "-n", "web", "gizmos", ""}
	if r := crdcache(t, args...); r.out != "a\nb\n:4\n" {
		t.Errorf("completions %q, want a and b", r.out)
	}
	server.AddFaults(apitest.Fault{Path: "/apis/example.com/v1/namespaces/web/gizmos"})
	if r := crdcache(t, args...); r.code != cli.ExitOK || strings.Contains(r.out, "a\n") {
		t.Errorf("exit code %d, want %d; completions %q", r.code, cli.ExitOK, r.out)
	}
}
