//go:build unix

package cli_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
)

// TestOneMeaning verifies that the settings of a resource hold in the library, in all commands and on the
// page, or that serve says which it cannot serve.
func TestOneMeaning(t *testing.T) {
	shortRuntimeDir(t)
	table, err := os.ReadFile("../../../../testdata/one_meaning.txt")
	must(t, err)
	selected := map[string][]string{"all": {"db/c", "db/d", "web/a", "web/b"}, "none": nil, "name": {"web/a"},
		"inside": {"web/a", "web/b"}, "outside": {"db/c", "db/d"}}
	for line := range strings.Lines(strings.NewReplacer("NAMESPACE", "web", "NAME", "a", "KEPT", "",
		"FIELD", ".spec.note").Replace(string(table))) {
		cells := strings.Split(line, "|")
		keys, refusal := selected[strings.TrimSpace(cells[1])], strings.TrimSpace(cells[2])
		t.Run(cells[1], func(t *testing.T) { expectOneMeaning(t, cells[0], keys, refusal) })
	}
}

func expectOneMeaning(t *testing.T, settings string, keys []string, refusal string) {
	t.Log(settings)
	server := newCluster(t)
	server.Create(t, zones, newObject("Zone", "", "north", nil))
	for _, key := range []string{"web/a", "web/b", "db/c", "db/d"} {
		namespace, name, _ := strings.Cut(key, "/")
		server.Create(t, gizmos, newObject("Gizmo", namespace, name, map[string]any{"zone": "north", "note": "x"}))
	}
	text := fmt.Sprintf("apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: a}\n"+
		"spec:\n  resources:\n  - {name: things, match: {group: example.com, resource: gizmos}, %s"+
		" indexes: [{name: size, path: .spec.size}],\n"+
		"    references: [{name: zone, to: {group: example.com, kind: Zone, namePath: .spec.zone}}]}\n"+
		"  - {name: absent, match: {group: example.com, resource: nothing}, optional: true}\n", settings)
	config, err := indexers.Parse(indexers.Source{Name: "c.yaml", Data: []byte(text)})
	must(t, err)
	binding, err := bind.Run(t.Context(), &rest.Config{Host: server.URL}, config,
		bind.Options{Compression: s2.New()})
	must(t, err)
	target, err := binding.Target("things")
	must(t, err)
	if got := target.Informer.Snapshot().Len(); got != len(keys) {
		t.Errorf("the library has %d objects, want %d", got, len(keys))
	}
	flags := []string{"--config", writeTempFile(t, "c.yaml", text), "-s", server.URL}
	expect := func(verb string, r result) {
		t.Helper()
		found := strings.Fields(strings.ReplaceAll(r.out, "/", " "))
		if !slices.Equal(found, strings.Fields(strings.ReplaceAll(strings.Join(keys, " "), "/", " "))) {
			t.Errorf("%s prints\n%s%swant %v", verb, r.out, r.errOut, keys)
		}
	}
	const columns = "custom-columns=:.metadata.namespace,:.metadata.name"
	for _, verb := range [][]string{{"query", "things", "--keys-only"}, {"query", "gizmos", "--keys-only"},
		{"dump", "things", "-o", columns, "--no-headers"}} {
		expect(verb[0], crdcache(t, append(append(verb, "-A"), flags...)...))
	}
	for _, key := range []string{"web/a", "db/c"} {
		namespace, name, _ := strings.Cut(key, "/")
		r := crdcache(t, append([]string{"dump", "things/" + name, "-n", namespace, "-o", "name"}, flags...)...)
		if found := r.out != ""; found != slices.Contains(keys, key) {
			t.Errorf("dump of %s prints %s%s", key, r.out, r.errOut)
		}
	}
	stats := crdcache(t, append([]string{"stats", "things", "-A"}, flags...)...)
	if count := fmt.Sprintf(": %d objects", len(keys)); !strings.Contains(stats.out, count) &&
		!strings.Contains(stats.out, ": 1 object,") {
		t.Errorf("stats prints\n%s%swant%s", stats.out, stats.errOut, count)
	}
	var trees []struct {
		Trees []struct {
			Related []struct{ Namespace, Name string }
		}
	}
	tree := crdcache(t, append([]string{"tree", "zone/north", "--types", "things", "-A", "-o", "json"}, flags...)...)
	must(t, json.Unmarshal([]byte("["+tree.out+"]"), &trees))
	tree.out = ""
	for _, related := range trees[0].Trees[0].Related {
		tree.out += related.Namespace + "/" + related.Name + "\n"
	}
	expect("tree", tree)
	w := startWatch(t, append([]string{"watch", "things", "zones", "-A", "-o", "json"}, flags...)...)
	watched := result{}
	for range len(keys) + 1 { // and the zone
		var event struct {
			Object struct {
				Metadata struct{ Namespace, Name string }
			}
		}
		must(t, json.Unmarshal([]byte(w.nextLine()), &event))
		if m := event.Object.Metadata; m.Namespace != "" {
			watched.out += m.Namespace + "/" + m.Name + "\n"
		}
	}
	expect("watch", watched)
	w.interrupt()

	stderr, stderrWriter := io.Pipe()
	t.Cleanup(func() { stderr.Close() })
	startServe(t, stderrWriter, append([]string{"things", "--web"}, flags...)...)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && loginLink.FindString(lines.Text()) == "" {
	}
	b := newBrowser(t, lines.Text())
	go func() { _, _ = io.Copy(io.Discard, stderr) }() // ends with Close
	serves := refusal
	if serves == "" {
		serves = fmt.Sprintf(" %d\n", len(keys))
	}
	for status := ""; !strings.Contains(status, serves) && t.Context().Err() == nil; {
		status = crdcache(t, "serve", "status", "-s", server.URL).out
	}
	var page struct {
		Total           int
		ResourceVersion string // of a namespace that has listed
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end) &&
		(page.ResourceVersion == "" || page.Total != len(keys)); {
		b.read("/api/table?type=gizmos.example.com%2Fv1", &page)
	}
	if page.Total != len(keys) {
		t.Errorf("the page has %d objects, want %v", page.Total, keys)
	}
	expect("query with serve", crdcache(t, append([]string{"query", "things", "-A", "--keys-only"}, flags...)...))
}
