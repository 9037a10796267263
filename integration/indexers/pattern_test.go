package indexers_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/indexers/reload"
	"github.com/crdcache/crdcache/integration/harness"
)

func object(group, kind, namespace, name string, spec m) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: m{
		"apiVersion": group + "/v1", "kind": kind, "metadata": m{"namespace": namespace,
			"name": name}, "spec": spec,
	}}
}

// TestPatternGetsATypeThatIsInstalledLater installs two types that match a pattern of groups while informers
// run. Namespaces are selected by name as they are created.
func TestPatternGetsATypeThatIsInstalledLater(t *testing.T) {
	suffix := harness.Group(t)
	s := newFixture(t)
	wanted, other := harness.Namespace(t), harness.Namespace(t)
	b := s.bindConfig(parseConfig(t, `  - name: all
    match: {group: "*.`+suffix+`", resource: "*"}
    optional: true
    namespaces: {include: ["*"], exclude: ["`+other[:len(other)-1]+`*"]}
    indexes: [{name: color, path: .spec.color}, {name: size, path: .spec.size, type: int, order: sorted}]
`))
	if err := s.tracker.WaitForSync(s.ctx); err != nil {
		t.Fatal(err)
	}
	if len(b.Targets()) != 0 {
		t.Errorf("bound: %v", b.Targets())
	}
	skip := strings.HasPrefix(wanted, other[:len(other)-1]) // the names are random
	harness.InstallCRDs(t, harness.NewCRD("a."+suffix, "Widget"))
	harness.Apply(t, object("a."+suffix, "Widget", wanted, "x", m{"color": "red", "size": int64(10)}),
		object("a."+suffix, "Widget", other, "y", m{"color": "red", "size": int64(9)}))
	if !skip {
		s.awaitQuery(b, "all", "color=red && size>5", wanted+"/x")
	}
	harness.InstallCRDs(t, harness.NewCRD("b."+suffix, "Gadget"))
	harness.Eventually(t, func(context.Context) error {
		if n := len(b.Targets()); n != 2 {
			return errTargets(n)
		}
		return nil
	})
}

type errTargets int

func (e errTargets) Error() string { return "not two targets" }

// TestReload changes a config file while informers run: the new index needs no new list.
func TestReload(t *testing.T) {
	group := harness.Group(t)
	harness.InstallCRDs(t, harness.NewCRD(group, "Widget"))
	namespace := harness.Namespace(t)
	harness.Apply(t, object(group, "Widget", namespace, "x", m{"color": "red", "size": int64(10)}),
		object(group, "Widget", namespace, "y", m{"color": "blue", "size": int64(9)}))
	file := filepath.Join(t.TempDir(), "indexes.yaml")
	write := func(indexes string) {
		t.Helper()
		text := "apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: test}\nspec:\n  resources:\n  - name: widgets\n    match: {group: " + group + ", kind: Widget}\n    indexes: " + indexes + "\n"
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write("[{name: color, path: .spec.color}]")
	s := newFixture(t)
	outcomes := make(chan reload.Outcome, 10)
	var apply func(reload.Update) error
	watcher, err := reload.New(s.ctx, reload.Options{
		Files: []string{file}, Quiet: time.Millisecond,
		Apply:  func(_ context.Context, u reload.Update) error { return apply(u) },
		Report: func(o reload.Outcome) { outcomes <- o },
	})
	if err != nil {
		t.Fatal(err)
	}
	b := s.bindConfig(watcher.Config())
	apply = func(u reload.Update) error { return b.Apply(u.New) }
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- watcher.Run(ctx) }() // ended by cancel
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	s.awaitQuery(b, "widgets", "color=red", namespace+"/x")
	before, err := b.Target("widgets")
	if err != nil {
		t.Fatal(err)
	}
	relists := before.Informer.Status().Relists

	write("[{name: color, pathe: .spec.color}]")
	if o := <-outcomes; o.Err == nil || !strings.Contains(o.String(), `did you mean "path"?`) {
		t.Errorf("got %v", o)
	}
	s.awaitQuery(b, "widgets", "color=red", namespace+"/x")
	write("[{name: color, path: .spec.color}, {name: size, path: .spec.size, type: int, order: sorted}]")
	if o := <-outcomes; o.Err != nil || len(o.Changes) != 1 || !o.Changes[0].InPlace() {
		t.Errorf("got %v", o)
	}
	s.awaitQuery(b, "widgets", "size>9", namespace+"/x")
	after, err := b.Target("widgets")
	if err != nil || after.Informer != before.Informer || after.Informer.Status().Relists != relists {
		t.Errorf("the informer was replaced, or listed again: %v", err)
	}
}
