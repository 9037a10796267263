package bind_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/indexers/reload"
	"github.com/crdcache/crdcache/internal/testkit"
)

// TestResourceOptions verifies that each field of a resource becomes an option of its informer.
func TestResourceOptions(t *testing.T) {
	config := parse(t, `  - name: w
    match: {group: example.com, kind: Widget}
    storage: {mode: Compressed}
    namespaces: {include: [b, a, c], exclude: [c]}
    selectors: {labels: "app=web,tier!=test", fields: metadata.name!=x}
    prune:
      presets: [ManagedFields, LastApplied]
      remove: [".status.conditions[*].message", '.metadata.labels["a\"'']b/c.d"]', .spec.kept]
    indexes: [{name: i, path: .spec.kept.x}]
`)
	got, err := bind.Options{Compression: s2.New()}.ResourceOptions(config.Resources[0])
	noError(t, err)
	wantPrune := dynamicinformer.Prune{
		Presets: []dynamicinformer.PrunePreset{dynamicinformer.PruneManagedFields,
			dynamicinformer.PruneLastApplied},
		Paths: []string{".status.conditions[*].message", `.metadata.labels["a\"']b/c.d"]`},
	}
	if diff := cmp.Diff(wantPrune, got.Prune); diff != "" {
		t.Errorf("prune (-want +got):\n%s", diff)
	}
	text := []string{got.Storage.Mode.String(), got.Namespaces.String(), got.LabelSelector.String(),
		got.FieldSelector.String()}
	if diff := cmp.Diff([]string{"compressed", "in a,b", "app=web,tier!=test", "metadata.name!=x"}, text); diff != "" {
		t.Errorf("storage, namespaces and selectors (-want +got):\n%s", diff)
	}
	if got.Storage.Compression == nil {
		t.Error("Compression = nil, want the one of bind.Options")
	}
}

// TestKeepOfTheOptions verifies that the options keep the declared fields and the fields that indexes read.
func TestKeepOfTheOptions(t *testing.T) {
	config := parse(t, `  - name: w
    match: {group: example.com, kind: Widget}
    keep: {paths: ['.spec.layers[*].name']}
    indexes: [{name: i, path: '.spec["a.b"]'}]
  - {name: empty, match: {group: example.com, kind: Box}, keep: {paths: []}}
  - {name: unset, match: {group: example.com, kind: Bag}}
`)
	for _, r := range config.Resources[1:] {
		got, err := bind.Options{}.ResourceOptions(r)
		if err != nil || (got.Keep.Paths != nil) != (r.Name == "empty") || got.Prune.Paths != nil {
			t.Errorf("ResourceOptions of %s = %+v, %v; want Keep only for empty, and no Prune", r.Name, got,
				err)
		}
	}
	got, err := bind.Options{}.ResourceOptions(config.Resources[0])
	if err != nil || got.Validate() != nil {
		t.Fatal(err, got.Validate())
	}
	want := dynamicinformer.Keep{Paths: []string{".spec.layers[*].name", `.spec["a.b"]`}}
	if diff := cmp.Diff(want, got.Keep); diff != "" {
		t.Errorf("keep (-want +got):\n%s", diff)
	}
}

// TestDefinitions verifies that configs can be checked against the definitions read from a cluster.
func TestDefinitions(t *testing.T) {
	s := newFixture(t)
	client, err := dynamic.NewForConfig(s.server)
	noError(t, err)
	definitions, err := bind.Definitions(s.ctx, client, nil)
	if err != nil || len(definitions) != 1 {
		t.Fatalf("Definitions returned %d definitions, %v; want 1", len(definitions), err)
	}
	if _, err := parse(t, widgetsBySize).Check(definitions); err != nil {
		t.Errorf("Check of a valid config: %v", err)
	}
	if _, err := parse(t, strings.Replace(widgetsBySize, ".spec.size", ".spec.sice",
		1)).Check(definitions); err == nil || !strings.Contains(err.Error(), "did you mean .spec.size?") {
		t.Errorf("Check of a misspelled path: got the error %v, want a suggestion", err)
	}
	canceled, cancel := context.WithCancel(s.ctx)
	cancel()
	if _, err := bind.Definitions(canceled, client, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Definitions with a canceled context: got the error %v, want context.Canceled", err)
	}
}

// TestUncheckedTypes verifies that references to a type that is not served, not in the config, or removed do
// not dangle: Unchecked returns the type and the reason.
func TestUncheckedTypes(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, gadgetsAndWidgets))
	graph, err := binding.References()
	noError(t, err)
	expectUnchecked := func(condition string, want ...string) {
		t.Helper()
		var got []string
		s.eventually(condition, func() bool {
			got = nil
			for _, u := range graph.Unchecked() {
				got = append(got, u.String())
			}
			return slices.Equal(got, want) && len(want) == 0 == (len(graph.Dangling()) > 0)
		})
	}
	expectUnchecked("the type is not served", "3 references to Gadget.example.com are not checked: discovery knows no such type; install its CRD, or correct the reference")
	querier, err := binding.Querier("widgets")
	noError(t, err)
	plan, err := querier.Explain(query.Dangling("gadget"), query.Options{})
	if err != nil || len(plan.Warnings) != 1 || !strings.Contains(plan.Warnings[0],
		"discovery knows no such type") {
		t.Errorf("Explain = %v, %v; want one warning about the unknown type", plan, err)
	}
	apply(s.cluster, definition("example.com", "gadgets", "Gadget"))
	expectUnchecked("the type is served")

	var events []references.Event
	received := make(chan references.Event, 100)
	subscription, err := graph.Subscribe(func(e references.Event) { received <- e })
	noError(t, err)
	t.Cleanup(subscription.Stop)
	for range 3 { // initial events
		events = append(events, <-received)
	}
	s.delete(crd.GVR, "", "gadgets.example.com")
	expectUnchecked("the type is deleted",
		"3 references to Gadget.example.com are not checked: the server does not serve them now")
	for range 3 {
		if e := <-received; e.Type != references.DanglingStopped || e.Reason != references.TargetUnknown {
			t.Errorf("event %+v after %v, want DanglingStopped because of TargetUnknown", e, events)
		}
	}
	apply(s.cluster, definition("example.com", "gadgets", "Gadget"))
	expectUnchecked("the type is served again")

	if err := binding.Apply(parse(t,
		gadgetsAndWidgets[:strings.Index(gadgetsAndWidgets, "  - name: gadgets")])); err != nil {
		t.Fatal(err)
	}
	expectUnchecked("the config has no resource for the type",
		"3 references to Gadget.example.com are not checked: no resource of the config matches gadgets.example.com")
}

// TestBindingFollowsItsFiles verifies that a binding applies the new content of a ConfigMap and of a replaced
// file, also when a resource moves between files.
func TestBindingFollowsItsFiles(t *testing.T) {
	s := newFixture(t)
	mount := &testkit.ConfigMapMount{Dir: t.TempDir()}
	thirdFile := filepath.Join(t.TempDir(), "local.yaml")
	header := func(name string) string {
		return "apiVersion: crdcache.dev/v1beta1\nkind: IndexConfig\nmetadata: {name: " + name +
			"}\nspec:\n  resources:\n"
	}
	definitions := "  - name: definitions\n    match: {group: apiextensions.k8s.io, kind: CustomResourceDefinition}\n    optional: true\n"
	writeThird := func(index string) {
		t.Helper()
		text := header("third") + strings.NewReplacer("name: widgets", "name: third", "color, path",
			index+", path").Replace(widgetsByColor)
		testkit.ReplaceFile(t, thirdFile, text)
	}
	writeThird("color")
	mount.Swap(t, map[string]string{"first.yaml": header("first") + widgetsByColor,
		"second.yaml": header("second") + definitions})

	var binding *bind.Binding
	watcher, err := reload.New(reload.Options{
		Files: []string{filepath.Join(mount.Dir, "first.yaml"), filepath.Join(mount.Dir, "second.yaml"),
			thirdFile}, PollInterval: time.Millisecond,
		Apply: func(_ context.Context, config *indexers.Config) error { return binding.Apply(config) },
		Report: func(o reload.Outcome) {
			if o.Err != nil {
				t.Error(o)
			}
		},
	})
	noError(t, err)
	binding = s.follow(watcher.Config())
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- watcher.Run(ctx) }() // ended by cancel
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	s.eventually("bound", func() bool { return queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") })
	target, err := binding.Target("widgets")
	noError(t, err)

	mount.Swap(t, map[string]string{"first.yaml": header("first") + definitions, "second.yaml": header("second") +
		widgetsBySize})
	s.eventually("the swapped files are applied", func() bool {
		return queryReturns(binding, "widgets", "color=lamp && size>5", "home/lamp")
	})
	if now, err := binding.Target("widgets"); err != nil || now.Informer != target.Informer ||
		len(binding.Pending()) > 0 {
		t.Errorf("a resource that moved to another file has another informer, want the same one (%v)", err)
	}
	writeThird("colour")
	s.eventually("the replaced file is applied", func() bool {
		return queryReturns(binding, "third", "colour=red", "home/chair", "home/lamp")
	})
	mount.Swap(t, map[string]string{"first.yaml": header("first") + widgetsByColor,
		"second.yaml": header("second") + definitions})
	s.eventually("the files of the first version are applied again",
		func() bool { return queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") })
}
