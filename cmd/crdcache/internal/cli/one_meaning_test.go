//go:build unix

package cli_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
)

// TestOneMeaning verifies that the settings of a resource hold in the library and in all commands, or that
// serve says which it cannot serve.
func TestOneMeaning(t *testing.T) {
	shortRuntimeDir(t)
	for settings, test := range map[string]struct {
		keys   []string
		serves string // the number of objects in the status of serve, or why it serves none
	}{
		"":                                     {[]string{"db/c", "db/d", "web/a", "web/b"}, " 4\n"},
		"selectors: {labels: none=such}":       {nil, "selectors: all objects of a type are served"},
		"selectors: {fields: metadata.name=a}": {[]string{"web/a"}, "selectors: all objects"},
		"namespaces: {include: [web]}":         {[]string{"web/a", "web/b"}, " 2\n"},
		"namespaces: {exclude: ['w*']}":        {[]string{"db/c", "db/d"}, "name one namespace"},
		"keep: {paths: []}":                    {[]string{"db/c", "db/d", "web/a", "web/b"}, " 4\n"},
		"prune: {remove: [.spec.note]}, storage: {mode: Compressed}": {[]string{"db/c", "db/d", "web/a",
			"web/b"}, " 4\n"},
		"storage: {mode: Object}": {[]string{"db/c", "db/d", "web/a", "web/b"}, "cannot serve objects with mode"},
	} {
		server := newIndexedServer(t)
		text := fmt.Sprintf("apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: a}\n"+
			"spec:\n  resources:\n  - {name: things, match: {group: example.com, resource: gizmos}, %s}\n"+
			"  - {name: absent, match: {group: example.com, resource: nothing}, optional: true}\n",
			strings.TrimPrefix(settings+", indexes: [{name: size, path: .spec.size}]", ", "))
		config, err := indexers.Parse(indexers.Source{Name: "c.yaml", Data: []byte(text)})
		must(t, err)
		binding, err := bind.Run(t.Context(), &rest.Config{Host: server.URL}, config,
			bind.Options{Compression: s2.New()})
		must(t, err)
		target, err := binding.Target("things")
		must(t, err)
		if got := target.Informer.Snapshot().Len(); got != len(test.keys) {
			t.Errorf("with %q: the library has %d objects, want %d", settings, got, len(test.keys))
		}
		file := writeTempFile(t, "c.yaml", text)
		want := strings.Join(append(test.keys, ""), "\n")
		for _, verb := range [][]string{{"query", "things", "--keys-only"}, {"query", "gizmos", "--keys-only"},
			{"dump", "things", "-o", "custom-columns=:.metadata.namespace,:.metadata.name", "--no-headers"}} {
			r := crdcache(t, append(verb, "-A", "--config", file, "-s", server.URL)...)
			if got := strings.Join(strings.Fields(strings.ReplaceAll(r.out, "/", " ")), " "); got !=
				strings.Join(strings.Fields(strings.ReplaceAll(want, "/", " ")), " ") {
				t.Errorf("with %q: %v prints\n%s%swant\n%s", settings, verb, r.out, r.errOut, want)
			}
		}
		stats := crdcache(t, "stats", "things", "-A", "--config", file, "-s", server.URL)
		if count := fmt.Sprintf(": %d objects", len(test.keys)); !strings.Contains(stats.out, count) &&
			!strings.Contains(stats.out, ": 1 object,") {
			t.Errorf("with %q: stats prints\n%s%swant%s", settings, stats.out, stats.errOut, count)
		}
		startServe(t, &bytes.Buffer{}, "things", "--config", file, "-s", server.URL)
		status := ""
		for !strings.Contains(status, test.serves) && t.Context().Err() == nil {
			status = crdcache(t, "serve", "status", "-s", server.URL).out
		}
		if got := crdcache(t, "query", "things", "-A", "--keys-only", "--config", file, "-s", server.URL); got.out != want {
			t.Errorf("with %q: query with serve prints\n%s%swant\n%s", settings, got.out, got.errOut, want)
		}
	}
}
