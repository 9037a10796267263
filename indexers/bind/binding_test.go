package bind_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestPatternBindsLaterType verifies that a type that is installed later is bound when it appears.
func TestPatternBindsLaterType(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, anyExample))
	noError(t, s.tracker.WaitForSync(s.ctx))
	var missing *bind.TargetError
	if _, err := binding.Querier("all"); !errors.As(err, &missing) || len(missing.Types) != 0 {
		t.Errorf("Querier before any type exists: got the error %v, want a *TargetError without types", err)
	}
	apply(s.cluster, definition("iam.example.com", "roles", "Role"))
	apply(s.cluster, `{apiVersion: iam.example.com/v1, kind: Role, metadata: {namespace: a, name: x}, spec: {color: red}}`)
	s.eventually("the pattern binds roles", func() bool { return queryReturns(binding, "all", "color=red", "a/x") })
	apply(s.cluster, definition("net.example.com", "nets", "Net"))
	s.eventually("the pattern binds nets", func() bool { return len(binding.Targets()) == 2 })
	if _, err := binding.Querier("all"); !errors.As(err, &missing) || len(missing.Types) != 2 {
		t.Errorf("Querier of two types: got the error %v, want a *TargetError with both types", err)
	}
	names := []string{}
	for _, target := range binding.Targets() {
		names = append(names, target.GVR.Resource)
	}
	if diff := cmp.Diff([]string{"roles", "nets"}, names); diff != "" {
		t.Errorf("resources of the targets (-want +got):\n%s", diff)
	}
}

// TestApply verifies that changes of indexes are applied to the running informer. Other changes start a new
// informer, and a removed resource stops its informer.
func TestApply(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, widgetsByColor))
	s.eventually("bound", func() bool { return queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") })
	first, err := binding.Target("widgets")
	noError(t, err)

	noError(t, binding.Apply(parse(t, widgetsBySize)))
	if !queryReturns(binding, "widgets", "size>5", "home/lamp", "home/table") ||
		!queryReturns(binding, "widgets", "color=lamp", "home/lamp") {
		t.Error("queries of the new indexes do not return the matching widgets")
	}
	second, err := binding.Target("widgets")
	if err != nil || second.Informer != first.Informer {
		t.Errorf("a change of indexes replaced the informer, want the same one (%v)", err)
	}
	if stats := second.Stats(); len(stats) != 2 || stats[0].Index != "color" || stats[0].Matched != 3 ||
		stats[1].Matched != 3 {
		t.Errorf("Stats = %+v, want two indexes, color first, with 3 matches each", stats)
	}

	noError(t, binding.Apply(parse(t, "  # the same\n"+widgetsBySize)))
	if same, err := binding.Target("widgets"); err != nil || same.Informer != first.Informer ||
		same.Resource != binding.Config().Resources[0] {
		t.Errorf("Target after an equal config = %+v, %v; want the same informer and the new resource", same,
			err)
	}

	noError(t, binding.Apply(parse(t, widgetsDecoded)))
	s.eventually("a new informer runs", func() bool {
		target, err := binding.Target("widgets")
		return err == nil && target.Informer != first.Informer
	})
	third, err := binding.Target("widgets")
	if err != nil || !queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") {
		t.Errorf("the query of the new informer does not return all red widgets: %v", err)
	}
	s.eventually("the old informer stops", first.Informer.IsStopped)

	noError(t, binding.Apply(parse(t, anyExample)))
	if len(binding.Targets()) != 0 {
		t.Errorf("Targets = %v, want none after the resource is removed", binding.Targets())
	}
	s.eventually("the last informer stops", third.Informer.IsStopped)
}

// TestApplyRemovedAndInvalid verifies that a removed index is dropped immediately, and an invalid config
// changes nothing.
func TestApplyRemovedAndInvalid(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, widgetsBySize))
	s.eventually("bound", func() bool { return queryReturns(binding, "widgets", "size>5", "home/lamp", "home/table") })
	invalid := parse(t, strings.Replace(widgetsDecoded, "mode: Object", "mode: Compressed", 1))
	if err := binding.Apply(invalid); err == nil || !strings.Contains(err.Error(), "needs a compression") ||
		binding.Config() == invalid {
		t.Errorf("Apply of an invalid config: got the error %v, want one about the compression, and no new config",
			err)
	}
	if _, err := bind.New(s.factory, invalid, bind.Options{}); err == nil {
		t.Error("New of a config that needs a compression returned no error")
	}
	if err := binding.Apply(parse(t, strings.Replace(widgetsBySize, "{name: color, path: .metadata.name}, ", "",
		1))); err != nil {
		t.Fatal(err)
	}
	querier, err := binding.Querier("widgets")
	noError(t, err)
	var unknown *query.UnknownIndexError
	if _, err := querier.ByIndex("color", "lamp"); !errors.As(err, &unknown) ||
		!slices.Equal(unknown.Known, []string{"namespace", "size"}) {
		t.Errorf("ByIndex of a removed index: got the error %v, want an UnknownIndexError", err)
	}
	binding.Close()
	if err := binding.Apply(parse(t, widgetsByColor)); !errors.Is(err, bind.ErrClosed) {
		t.Errorf("Apply after Close: got the error %v, want ErrClosed", err)
	}
}

// TestListOnlyTypes verifies that types that can be listed but not watched are bound, because informers poll
// them: those of a catalog and those of a tracker.
func TestListOnlyTypes(t *testing.T) {
	s := newFixtureWithMiddleware(t, apitest.WithoutCoreWatches)
	client, err := discovery.NewClient(s.server, discovery.Options{})
	noError(t, err)
	catalog, err := client.Catalog(s.ctx)
	noError(t, err)
	if r, ok := catalog.Lookup(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}); !ok ||
		r.Watchable() {
		t.Fatalf("the catalog has %+v, want namespaces without the verb watch", r)
	}
	const namespaces = `  - name: namespaces
    match: {group: "", resource: namespaces}
    indexes: [{name: team, path: .metadata.labels.team}]
`
	listed, err := bind.New(s.factory, parse(t, namespaces), bind.Options{})
	noError(t, err)
	t.Cleanup(listed.Close)
	if err := listed.Resolve(catalog); err != nil {
		t.Errorf("Resolve: got the error %v, want a binding of namespaces", err)
	}
	err = s.cluster.Load(s.ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1",
		"kind": "Namespace", "metadata": map[string]any{"name": "shop",
			"labels": map[string]any{"team": "blue"}}}})
	noError(t, err)
	tracked := s.follow(parse(t, namespaces))
	for name, binding := range map[string]*bind.Binding{"catalog": listed, "tracker": tracked} {
		s.eventually("namespaces of the "+name+" are bound", func() bool {
			return queryReturns(binding, "namespaces", "team=blue", "shop")
		})
	}
}

// TestResolve verifies that Resolve reports each missing type with its position in the config, and binds the
// other types.
func TestResolve(t *testing.T) {
	s := newFixture(t)
	client, err := discovery.NewClient(s.server, discovery.Options{})
	noError(t, err)
	catalog, err := client.Catalog(s.ctx)
	noError(t, err)
	binding, err := bind.New(s.factory, parse(t, widgetsByColor+anyExample+`  - name: gadgets
    match: {group: example.com, kind: Gadget}
  - name: old
    match: {group: example.com, version: v0, kind: Widget}
`), bind.Options{})
	noError(t, err)
	t.Cleanup(binding.Close)
	if _, err := binding.Querier("widgets"); !errors.Is(err, bind.ErrNoTypes) {
		t.Errorf("Querier before Resolve: got the error %v, want ErrNoTypes", err)
	}
	err = binding.Resolve(catalog)
	var ce *indexers.ConfigError
	if !errors.As(err, &ce) || len(ce.Diagnostics) != 2 {
		t.Fatalf("Resolve: got the error %v, want a *ConfigError with 2 diagnostics", err)
	}
	for i, want := range []string{
		"c.yaml:14:39: E304: the server has no type that fits Gadget.example.com; install its CRD",
		`c.yaml:16:52: E304: widgets.example.com has no version "v0" with the verbs list and watch; the versions with these verbs are v1`,
	} {
		if got := ce.Diagnostics[i].String(); !strings.HasPrefix(got, want) {
			t.Errorf("diagnostic %d = %s, want %s", i, got, want)
		}
	}
	s.eventually("widgets are bound", func() bool {
		return queryReturns(binding, "widgets", "color=blue", "home/table")
	})
	var missing *bind.TargetError
	if _, err := binding.Querier("widgest"); !errors.As(err, &missing) ||
		!strings.Contains(err.Error(), `no resource "widgest"`) {
		t.Errorf("Querier of a misspelled resource: got the error %v, want a *TargetError with its name", err)
	}
	if _, err := binding.Target(""); err == nil {
		t.Error("Target of an empty name returned no error")
	}
}
