package filesource

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/internal/manifest"
)

// TestStdinIsKept verifies that Refresh keeps the objects of standard input, which cannot be read again.
func TestStdinIsKept(t *testing.T) {
	dir := writeTree(t, map[string]string{"a.yaml": widgetCRD})
	s := openSource(t, Options{Paths: []string{dir, manifest.Stdin}, In: strings.NewReader(widget("a", "red"))})
	writeFile(t, filepath.Join(dir, "b.yaml"), widget("b", "red"))
	must(t, s.Refresh(t.Context()))
	if diff := cmp.Diff([]string{"web/a red", "web/b red"}, colors(t, s)); diff != "" {
		t.Errorf("colors of the objects (-want +got):\n%s", diff)
	}
	must(t, os.Remove(filepath.Join(dir, "a.yaml")))
	must(t, s.Refresh(t.Context()))
	if err := s.Err(); err == nil ||
		!strings.Contains(err.Error(), "stdin:1: document 1: Widget web/a is no longer shown") {
		t.Errorf("Err() = %v, want the problem of standard input", err)
	}
}

// TestDroppedVersion verifies that objects in a version that a definition no longer serves are reported.
func TestDroppedVersion(t *testing.T) {
	dir := writeTree(t, map[string]string{"crd.yaml": widgetVersions("None"), "a.yaml": widget("a", "red"),
		"b.yaml": strings.Replace(widget("b", "red"), "/v1", "/v1beta1", 1)})
	s := openSource(t, Options{Paths: []string{dir}})
	writeFile(t, filepath.Join(dir, "crd.yaml"), widgetCRD)
	must(t, s.Refresh(t.Context()))
	fresh := openSource(t, Options{Paths: []string{dir}})
	shown := func(s *Source) []string { return append(colors(t, s), problemsOf(s, dir)...) }
	if diff := cmp.Diff(shown(fresh), shown(s)); diff != "" {
		t.Errorf("objects and problems (-opened again +refreshed):\n%s", diff)
	}
}

// TestDeletionInOtherVersion verifies that the deletion of an object in any version ends with its file.
func TestDeletionInOtherVersion(t *testing.T) {
	event := func(eventType string) string {
		return "type: " + eventType + "\nobject:\n  " + strings.ReplaceAll(widget("w", "red"), "\n", "\n  ") + "\n---\n"
	}
	v2 := strings.Replace(widget("w", "blue"), "/v1", "/v2", 1)
	dir := writeTree(t, map[string]string{"y.yaml": v2, "z.yaml": event("ADDED") + event("DELETED")})
	s := openSource(t, Options{Paths: []string{dir}})
	for _, step := range []struct {
		name, text string
		count      int
	}{{"z.yaml", "# nothing\n", 1}, {"z.yaml", event("ADDED") + event("DELETED"), 0}, {"y.yaml", "# nothing\n", 0},
		{"y.yaml", v2, 0}, {"z.yaml", "# nothing\n", 1}} {
		writeFile(t, filepath.Join(dir, step.name), step.text)
		must(t, s.Refresh(t.Context()))
		counts, _ := s.storage.Versions(widgets)
		if got := counts["v1"] + counts["v2"]; got != step.count {
			t.Fatalf("after %s has %.20q: %d objects, want %d", step.name, step.text, got, step.count)
		}
	}
}

// TestRefreshModel changes files at random. After each change, a refreshed Source and a new one must have the
// same types and objects.
func TestRefreshModel(t *testing.T) {
	definition := strings.Replace(widgetCRD, "  - {name: v1,",
		"  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n  - {name: v1,", 1)
	dir := writeTree(t, map[string]string{"crd.yaml": definition})
	s := openSource(t, Options{Paths: []string{dir}})
	for step := range 40 {
		path := filepath.Join(dir, fmt.Sprint("f", step*7%5, ".yaml"))
		if step%6 == 5 {
			_ = os.Remove(path) // the file may not exist
		} else {
			var docs []string
			for i := range step % 4 {
				docs = append(docs, widget(fmt.Sprint("w", (step*3+i)%6), fmt.Sprint("c", step)))
				docs[i] = strings.Replace(docs[i], "/v1", fmt.Sprint("/v", 1+step/7%2), 1)
				docs[i] = strings.Replace(docs[i], "web}", fmt.Sprintf("web, creationTimestamp: '2026-11-%02dT00:00:00Z'}",
					1+(step*17+i)%28), 1)
			}
			if step%5 == 2 { // a recording
				objects := docs
				docs = nil
				for i, object := range slices.Concat(objects, objects[:len(objects)/2]) {
					eventType := []string{"ADDED", "DELETED"}[i/len(objects)]
					if eventType == "ADDED" { // an object of this file; others are deleted
						object = strings.Replace(object, "name: w", fmt.Sprint("name: r", step*7%5), 1)
					}
					docs = append(docs, "type: "+eventType+"\nobject:\n  "+strings.ReplaceAll(object, "\n", "\n  ")+"\n")
				}
			}
			writeFile(t, path, "# objects\n"+strings.Join(docs, "---\n"))
		}
		if step%22 == 10 {
			_ = os.Remove(filepath.Join(dir, "crd.yaml"))
		} else if step%11 == 3 {
			plural := []string{"widgets", "wodgets"}[step/11%2]
			writeFile(t, filepath.Join(dir, "crd.yaml"), strings.ReplaceAll(definition, "widgets", plural))
		}
		must(t, s.Refresh(t.Context()))
		served := func(s *Source) []string {
			all := append(colors(t, s), s.Time().String())
			types, _ := s.storage.ServedTypes()
			for _, served := range types {
				for _, v := range served.Versions {
					all = append(all, served.GroupResource().String()+" "+v.Name)
				}
			}
			return all
		}
		want := served(openSource(t, Options{Paths: []string{dir}}))
		if diff := cmp.Diff(want, served(s)); diff != "" {
			t.Fatalf("step %d (-opened again +refreshed):\n%s", step, diff)
		}
	}
}

// TestRefresh changes files step by step, and verifies the objects and problems after each step.
func TestRefresh(t *testing.T) {
	dir := writeTree(t, map[string]string{"a.yaml": widgetCRD, "b.yaml": widget("a", "red") + "---\n" +
		widget("b", "red")})
	typesChangedCalls := 0
	var reported []*manifest.Problem
	s := openSource(t, Options{
		Paths: []string{dir}, TypesChanged: func() { typesChangedCalls++ },
		Report: func(p *manifest.Problem) { reported = append(reported, p) },
	})
	s.RecordUse(true, widgets)
	write := func(name, text string) func() { return func() { writeFile(t, filepath.Join(dir, name), text) } }
	removeFile := func(name string) func() {
		return func() {
			must(t, os.RemoveAll(filepath.Join(dir, name)))
		}
	}
	steps := []struct {
		name              string
		change            func()
		colors            []string
		problems          []string // new problems
		typesChangedCalls bool
	}{
		{"nothing", func() {}, []string{"web/a red", "web/b red"}, nil, false},
		{"change, add and drop", write("b.yaml", widget("b", "blue")+"---\n"+widget("c", "red")),
			[]string{"web/b blue", "web/c red"}, nil, false},
		{"a new file", write("new/d.yaml", widget("d", "green")), []string{"web/b blue", "web/c red",
			"web/d green"}, nil, false},
		{"a broken file keeps its objects", write("b.yaml", widget("c", "pink")+"---\na: [\n"),
			[]string{"web/b blue", "web/c pink", "web/d green"},
			[]string{"b.yaml:6: document 2: not valid YAML: did not find expected node content: " + string(manifest.ErrTruncated)}, false},
		{"an object with a flaw keeps its last state",
			write("b.yaml", widget("b", "blue")+"---\n"+strings.Replace(widget("c", "pink"), "namespace: web",
				"namespace: web, labels: 7", 1)), []string{"web/b blue", "web/c pink", "web/d green"},
			[]string{"b.yaml:6: document 2: Widget web/c: metadata: cannot restore map from int64"}, false},
		{"the file is empty, as before a write", write("b.yaml", ""), []string{"web/b blue", "web/c pink",
			"web/d green"}, []string{"b.yaml: the file is empty: write it again, or delete it if it has no objects"}, false},
		{"the file has content again", write("b.yaml", widget("b", "blue")), []string{"web/b blue", "web/d green"}, nil,
			false},
		{"the same object in a later file", write("x.yaml", widget("b", "gold")),
			[]string{"web/b gold", "web/d green"},
			[]string{"warning: x.yaml:1: document 1: Widget web/b is also at b.yaml:1; this one is used"},
			false},
		{"the object in the earlier file changes", write("b.yaml", widget("b", "sky")),
			[]string{"web/b gold", "web/d green"},
			[]string{"warning: b.yaml:1: document 1: Widget web/b is also at x.yaml:1; that one is used"},
			false},
		{"the later file is deleted", removeFile("x.yaml"), []string{"web/b sky", "web/d green"}, nil, false},
		{"a directory is deleted", removeFile("new"), []string{"web/b sky"}, nil, false},
		{"the definition is deleted", removeFile("a.yaml"), []string{"web/b sky"},
			[]string{
				"warning: b.yaml:1: document 1: no CustomResourceDefinition defines Widget.example.com: assuming it is namespaced and named widgets.example.com, without short names and columns; 'kubectl get crd widgets.example.com -o yaml > crd.yaml' and --from crd.yaml add them"}, true},
		{"a definition with a wrong name", write("a.yaml", strings.Replace(widgetCRD, "name: widgets.", "name: w.",
			1)), []string{"web/b sky"}, []string{
			`a.yaml:1: document 1: CustomResourceDefinition w.example.com: metadata.name is "w.example.com": want plural and group, "widgets.example.com"`}, true},
		{"the definition is restored", write("a.yaml", widgetCRD), []string{"web/b sky"}, nil, false},
		{"another scope", write("a.yaml", strings.Replace(widgetCRD, "Namespaced", "Cluster", 1)),
			[]string{"/b sky"}, []string{
				"warning: b.yaml:1: document 1: Widget b is cluster-scoped: its namespace is ignored"}, false},
		{"the scope back", write("a.yaml", widgetCRD), []string{"web/b sky"}, nil, false},
		{"the wrong scope again", write("a.yaml", strings.Replace(widgetCRD, "Namespaced", "Cluster", 1)),
			[]string{"/b sky"}, []string{
				"warning: b.yaml:1: document 1: Widget b is cluster-scoped: its namespace is ignored"}, false},
		{"the definition is deleted again", removeFile("a.yaml"), []string{"web/b sky"},
			[]string{
				"warning: b.yaml:1: document 1: no CustomResourceDefinition defines Widget.example.com: assuming it is namespaced and named widgets.example.com, without short names and columns; 'kubectl get crd widgets.example.com -o yaml > crd.yaml' and --from crd.yaml add them"}, true},
		{"a definition without the version",
			write("a.yaml", strings.Replace(widgetCRD, "name: v1,", "name: v2,", 1)), nil, []string{
				`b.yaml:1: document 1: Widget web/b: Widget.example.com is not served in version "v1" but in ["v2"]`}, true},
		{"a definition with the version", write("a.yaml", strings.Replace(widgetCRD, "  - {name: v1,",
			"  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}\n  - {name: v1,", 1)), []string{"web/b sky"}, nil, false},
		{"all files are deleted", func() { removeFile("a.yaml")(); removeFile("b.yaml")() }, nil, []string{
			"warning: DIR: the directory has no YAML or JSON files or archives (.yaml, .yml, .json, .jsonl, .tar, .tgz, .zip; also with .gz or .zst)"}, true},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			reported = nil
			before := typesChangedCalls
			step.change()
			must(t, s.Refresh(t.Context()))
			if diff := cmp.Diff(step.colors, colors(t, s)); diff != "" {
				t.Errorf("widgets (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(append([]string{}, step.problems...), describe(reported, dir)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if (typesChangedCalls > before) != step.typesChangedCalls {
				t.Errorf("TypesChanged was called %d times, want it only for changed types",
					typesChangedCalls-before)
			}
		})
	}
}

// writeCertificates writes objects of 2 KB each as kubectl get -o json does, without a definition.
func writeCertificates(tb testing.TB, n int) string {
	tb.Helper()
	var text bytes.Buffer
	text.WriteString("{\n\"apiVersion\": \"v1\",\n\"items\": [\n")
	for i := range n {
		names := []string{}
		for k := range 12 {
			names = append(names, fmt.Sprintf("host-%d.team-%d.region-%d.example.com", i, i%97, k))
		}
		data, err := json.Marshal(map[string]any{
			"apiVersion": "example.com/v1", "kind": "Certificate",
			"metadata": map[string]any{
				"name": fmt.Sprint("certificate-", i), "namespace": fmt.Sprint("team-",
					i%97), "uid": fmt.Sprintf("00000000-0000-0000-0000-%012d", i),
				"resourceVersion": fmt.Sprint(1000 +
					i), "labels": map[string]string{"team": fmt.Sprint("team-",
					i%97), "app.kubernetes.io/part-of": "shop"},
			},
			"spec": map[string]any{"dnsNames": names, "secretName": fmt.Sprint("secret-", i),
				"issuerRef": map[string]string{"kind": "ClusterIssuer", "name": "ca"}},
			"status": map[string]any{"conditions": []any{map[string]string{"type": "Ready", "status": "True",
				"message": fmt.Sprintf("%0700d", i)}}},
		})
		must(tb, err)
		if i > 0 {
			text.WriteString(",\n")
		}
		text.Write(data)
	}
	text.WriteString("\n],\n\"kind\": \"List\"\n}\n")
	path := filepath.Join(tb.TempDir(), "certificates.json")
	must(tb, os.WriteFile(path, text.Bytes(), 0o600))
	return path
}

// liveHeap returns the size of reachable memory.
func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // releases memory freed by finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMemory verifies that an object of an inferred type takes at most 900 bytes in addition to its JSON.
func TestMemory(t *testing.T) {
	const n = 1000
	path := writeCertificates(t, n)
	info, err := os.Stat(path)
	must(t, err)
	before := liveHeap()
	s := openSource(t, Options{Paths: []string{path}})
	perObject := float64(liveHeap()-before) / n
	size := float64(info.Size()) / n
	t.Logf("%.0f bytes of heap for an object of %.0f bytes", perObject, size)
	if perObject > size+900 {
		t.Errorf("%.0f bytes of heap for an object of %.0f bytes, want at most 900 bytes more", perObject,
			size)
	}
	runtime.KeepAlive(s)
}
