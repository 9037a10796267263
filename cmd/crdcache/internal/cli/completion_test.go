package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestCompletion verifies the completion of types, config names, indexes, namespaces and contexts. An
// unreachable server causes no error.
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
		"verbs": {[]string{"dum"}, "dump\t"},
		"types": {[]string{"dump", "-s", server.URL, "gi"}, "gizmos.example.com\n:4"},
		"second": {[]string{"dump", "-s", server.URL, "gizmos.example.com", "zo"},
			"zones.example.com\n:4"},
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
		"context": {[]string{"dump", "--kubeconfig", inContext, "--context", "db", "gizmos", ""},
			"c\nd\n:4"},
		"snapshot": {[]string{"dump", "--from", savedSnapshot, "gi"}, "gizmos.example.com\n:4"},
		"saved":    {[]string{"dump", "--from", savedSnapshot, "-n", "web", "gizmos", ""}, "a\nb\n:4"},
		"manifests": {[]string{"tree", "--from", demoData + "/objects", "-n", "edge", "workloads/d"},
			"workloads/dns\n:4"},
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
		`no completion for "tcsh": use bash,`:     {"completion", "tcsh"},
		`'crdcache completion bash' takes no arg`: {"completion", "bash", "x"},
		`unknown command "tcsh"`:                  {"help", "tcsh"},
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
	if err != nil {
		t.Fatal(err)
	}
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
