package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestSetTypeSettings changes the settings of a type while its objects change. Handlers of each form receive
// exactly the differences, indexes and registrations stay.
func TestSetTypeSettings(t *testing.T) {
	server := newServer(t)
	for _, namespace := range []string{"web", "db", "other"} {
		server.Create(t, configMaps, colored(configMap(namespace, "fixed"), "red"))
	}
	c := newCache(t, server, cache.Options{}, Options{})
	if err := c.SetTypeSettings(t.Context(), &corev1.ConfigMap{},
		TypeSettings{ByObject: withColor("red")}); err != nil {
		t.Fatal("SetTypeSettings() before the type is used:", err)
	}
	if err := c.IndexField(t.Context(), &corev1.ConfigMap{}, "name",
		func(o client.Object) []string { return []string{o.GetName()} }); err != nil {
		t.Fatal(err)
	}
	ledgers := map[string]*ledger{}
	registrations := map[string]toolscache.ResourceEventHandlerRegistration{}
	informers := map[string]cache.Informer{}
	for name, form := range emptyForms() {
		i, err := c.GetInformer(t.Context(), form)
		must(t, err)
		ledgers[name], informers[name] = newLedger(t, form), i
		if registrations[name], err = i.AddEventHandler(ledgers[name]); err != nil {
			t.Fatal(err)
		}
	}
	hasColor := func(color string) func(*unstructured.Unstructured) bool {
		return func(o *unstructured.Unstructured) bool { return o.GetLabels()["color"] == color }
	}
	annotate := func(in any) (any, error) {
		in.(client.Object).SetAnnotations(map[string]string{"transformed": "true"})
		return in, nil
	}
	steps := []struct {
		name     string
		settings TypeSettings
		selects  func(*unstructured.Unstructured) bool
	}{
		{"before the start", TypeSettings{ByObject: withColor("blue")}, hasColor("blue")},
		{"label", TypeSettings{ByObject: withColor("red")}, hasColor("red")},
		{"another label", TypeSettings{ByObject: withColor("green")}, hasColor("green")},
		{"field", TypeSettings{ByObject: cache.ByObject{Field: fields.OneTermEqualSelector("metadata.name", "o1")}},
			func(o *unstructured.Unstructured) bool { return o.GetName() == "o1" }},
		{"namespaces", TypeSettings{ByObject: cache.ByObject{Namespaces: map[string]cache.Config{"web": {},
			"db": {LabelSelector: withColor("red").Label}}}}, func(o *unstructured.Unstructured) bool {
			return o.GetNamespace() == "web" || o.GetNamespace() == "db" && hasColor("red")(o)
		}},
		{"one namespace stays", TypeSettings{ByObject: cache.ByObject{Namespaces: map[string]cache.Config{"web": {},
			"other": {}}}}, func(o *unstructured.Unstructured) bool { return o.GetNamespace() != "db" }},
		{"any of", TypeSettings{AnyOf: []dynamicinformer.Selector{{Label: withColor("red").Label},
			{Field: fields.OneTermEqualSelector("metadata.name", "o1")}}}, func(o *unstructured.Unstructured) bool {
			return hasColor("red")(o) || o.GetName() == "o1"
		}},
		{"transform", TypeSettings{ByObject: cache.ByObject{Transform: annotate}},
			func(*unstructured.Unstructured) bool { return true }},
		{"storage", TypeSettings{Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageObject}},
			func(*unstructured.Unstructured) bool { return true }},
		{"defaults", TypeSettings{}, func(*unstructured.Unstructured) bool { return true }},
		{"the same", TypeSettings{}, func(*unstructured.Unstructured) bool { return true }},
	}
	for k, step := range steps {
		stop := writeRandomly(t, server)
		err := c.SetTypeSettings(t.Context(), &corev1.ConfigMap{}, step.settings)
		stop()
		if err != nil {
			t.Fatalf("%s: SetTypeSettings: %v", step.name, err)
		}
		if k == 0 {
			start(t, c)
		}
		want := func() map[string]string { return storedVersions(t, server, step.selects) }
		for name, l := range ledgers {
			awaitEqual(t, step.name+": handler of "+name, want, l.versions)
			if !registrations[name].HasSynced() || !informers[name].HasSynced() ||
				informers[name].IsStopped() {
				t.Errorf("%s: the informer or handler of %s has stopped or has not synced", step.name, name)
			}
		}
		var named corev1.ConfigMapList
		if err := c.List(t.Context(), &named, client.MatchingFields{"name": "o1"}); err != nil {
			t.Error(err)
		}
		all := map[string]client.Object{}
		for k := range named.Items {
			o := &named.Items[k]
			all[client.ObjectKeyFromObject(o).String()] = o
			if transformed := o.Annotations["transformed"] == "true"; transformed != (step.name == "transform") {
				t.Errorf("%s: %s is transformed: %v, want %v", step.name, o.Name, transformed, !transformed)
			}
		}
		expected := storedVersions(t, server, func(o *unstructured.Unstructured) bool {
			return o.GetName() == "o1" && step.selects(o)
		})
		if diff := cmp.Diff(expected, versionsOf(all)); diff != "" {
			t.Errorf("%s: index (-want +got):\n%s", step.name, diff)
		}
	}
	if expected := c.Factory().Informers(); len(expected) != 1 {
		t.Errorf("%d informers are left, want one for all forms", len(expected))
	}
	must(t, informers["typed"].RemoveEventHandler(registrations["typed"]))
	server.Create(t, configMaps, configMap("web", "late"))
	expected := func() map[string]string {
		return storedVersions(t, server, func(*unstructured.Unstructured) bool { return true })
	}
	awaitEqual(t, "after a removal", expected, ledgers["unstructured"].versions)
	if ledgers["typed"].versions()["web/late"] != "" {
		t.Error("the removed handler was called")
	}
}

// TestSetTypeSettingsFails verifies that the old settings stay if the server rejects the new ones, or the
// context ends.
func TestSetTypeSettingsFails(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, colored(configMap("web", "a"), "red"), colored(configMap("web", "b"), "blue"))
	c := newCache(t, server, cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: withColor("red")}}, Options{})
	start(t, c)
	i, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
	must(t, err)
	handler := newLedger(t, &corev1.ConfigMap{})
	registration, err := i.AddEventHandler(handler)
	must(t, err)
	red := func() map[string]string {
		return storedVersions(t, server,
			func(o *unstructured.Unstructured) bool { return o.GetLabels()["color"] == "red" })
	}
	setSettings := func(ctx context.Context) error {
		return c.SetTypeSettings(ctx, &corev1.ConfigMap{}, TypeSettings{ByObject: withColor("blue")})
	}
	path := "/api/v1/configmaps"
	server.AwaitRequest(t, path, "watch")
	for name, tt := range map[string]struct {
		fault      apitest.Fault
		ctx        func() (context.Context, context.CancelFunc)
		isExpected func(error) bool
	}{
		"rejected": {apitest.Fault{Path: path, Status: http.StatusBadRequest, Message: "no such field"},
			func() (context.Context, context.CancelFunc) { return context.WithCancel(t.Context()) },
			apierrors.IsBadRequest},
		"no answer": {unansweredRequests(path),
			func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(t.Context(), 300*time.Millisecond)
			},
			func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
	} {
		server.AddFaults(tt.fault)
		ctx, cancel := tt.ctx()
		err := setSettings(ctx)
		cancel()
		server.Repair()
		if !tt.isExpected(err) || !strings.Contains(err.Error(), "the old ones stay in effect") {
			t.Errorf("%s: SetTypeSettings() = %v, want an error that the old ones stay in effect", name, err)
		}
		server.Create(t, configMaps, colored(configMap("web", strings.ReplaceAll(name, " ", "-")), "red"))
		awaitEqual(t, name, red, handler.versions)
		var list corev1.ConfigMapList
		if err := c.List(t.Context(), &list); err != nil {
			t.Error(err)
		}
		if n := len(c.Factory().Informers()); n != 1 {
			t.Errorf("%s: %d informers, want 1", name, n)
		}
	}
	if err := setSettings(t.Context()); err != nil || !registration.HasSynced() {
		t.Fatal(err)
	}
	awaitEqual(t, "after the failures", func() map[string]string {
		return storedVersions(t, server,
			func(o *unstructured.Unstructured) bool { return o.GetLabels()["color"] == "blue" })
	}, handler.versions)
	for want, settings := range map[string]TypeSettings{
		"must not be negative": {ByObject: cache.ByObject{SyncPeriod: new(-time.Second)}},
		"read objects":         {Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageNone}},
		"stores only metadata": {Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageMetadata}},
		"cannot combine": {AnyOf: []dynamicinformer.Selector{{},
			{Field: fields.OneTermEqualSelector("spec.x", "y")}}},
		"status[": {Prune: dynamicinformer.Prune{Paths: []string{"status["}}},
	} {
		if err := c.SetTypeSettings(t.Context(), &corev1.ConfigMap{}, settings); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("SetTypeSettings(%+v) = %v, want the error %q", settings, err, want)
		}
	}
}

// TestChangingSelectors verifies that reads follow selectors that change after the settings are in effect.
func TestChangingSelectors(t *testing.T) {
	server := newServer(t)
	selectors := dynamicinformer.NewSelectors(dynamicinformer.Selector{Label: withColor("red").Label})
	server.Create(t, configMaps, colored(configMap("web", "a"), "red"), colored(configMap("web", "b"), "green"))
	c := newCache(t, server, cache.Options{}, Options{})
	start(t, c)
	check := func(err error, want string) {
		t.Helper()
		var list corev1.ConfigMapList
		if err := errors.Join(err, c.List(t.Context(), &list)); err != nil || len(list.Items) != 1 ||
			list.Items[0].Name != want {
			t.Fatalf("the cache has %v, want %s: %v", list.Items, want, err)
		}
	}
	check(c.SetTypeSettings(t.Context(), &corev1.ConfigMap{}, TypeSettings{Selectors: selectors}), "a")
	err := selectors.Add(dynamicinformer.Selector{Label: withColor("green").Label})
	selectors.Remove(dynamicinformer.Selector{Label: withColor("red").Label})
	check(errors.Join(err, c.Factory().Informers()[0].WaitForSelectors(t.Context())), "b")
}

// TestSetTypeSettingsWithChangingForms verifies that a form that is first used during a change has the new
// settings afterwards, and a form that is removed meanwhile stays removed.
func TestSetTypeSettingsWithChangingForms(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("a", "x"), configMap("b", "x"))
	c := newCache(t, server, cache.Options{}, Options{})
	start(t, c)
	list := func(l client.ObjectList, want int) {
		t.Helper()
		if err := c.List(t.Context(), l); err != nil || meta.LenList(l) != want {
			t.Errorf("%T has %d objects, want %d: %v", l, meta.LenList(l), want, err)
		}
	}
	unstructuredList := &unstructured.UnstructuredList{}
	unstructuredList.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMapList"))
	metadataList := &metav1.PartialObjectMetadataList{}
	metadataList.SetGroupVersionKind(unstructuredList.GroupVersionKind())
	list(&corev1.ConfigMapList{}, 2)
	list(unstructuredList, 2)
	path := "/api/v1/namespaces/a/configmaps"
	server.AddFaults(apitest.Fault{Path: path, Status: http.StatusServiceUnavailable})
	changed := make(chan error, 1)
	go func() {
		changed <- c.SetTypeSettings(t.Context(), &corev1.ConfigMap{}, TypeSettings{
			ByObject: cache.ByObject{Namespaces: map[string]cache.Config{"a": {}}}})
	}()
	server.AwaitRequest(t, path)
	list(metadataList, 2)
	removed := configMap("a", "x")
	must(t, c.RemoveInformer(t.Context(), removed))
	server.Repair()
	must(t, <-changed)
	if n := len(c.mu.resources); n != 2 {
		t.Errorf("%d forms are in use, want 2", n)
	}
	list(metadataList, 1)
	list(&corev1.ConfigMapList{}, 1)
	list(unstructuredList, 1)
}

// TestSetTypeSettingsClosesChannels verifies that a channel from before the change is closed when the handler
// has synced with the new informers, although an old one never synced.
func TestSetTypeSettingsClosesChannels(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("a", "x"), configMap("c", "x"))
	within := func(namespaces ...string) cache.ByObject {
		all := map[string]cache.Config{}
		for _, n := range namespaces {
			all[n] = cache.Config{}
		}
		return cache.ByObject{Namespaces: all}
	}
	server.AddFaults(unansweredRequests("/api/v1/namespaces/b/configmaps"))
	defer server.Repair()
	c := newCache(t, server, cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: within("a", "b")}}, Options{})
	start(t, c)
	i, err := c.GetInformer(t.Context(), &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	must(t, err)
	handle, err := i.AddEventHandler(newLedger(t, &corev1.ConfigMap{}))
	must(t, err)
	r := handle.(*registration)
	done := (&syncCheckers{conditions: r.conditions, resource: r.informer.resource}).Done()
	if err := c.SetTypeSettings(t.Context(), &corev1.ConfigMap{},
		TypeSettings{ByObject: within("a", "c")}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		t.Errorf("timed out waiting for the channel to be closed; HasSynced() = %v", handle.HasSynced())
	}
}

// TestSetTypeSettingsWithSlowHandler verifies that a slow handler receives all events of the old settings
// first, in order. It does not delay the change, and can be removed meanwhile.
func TestSetTypeSettingsWithSlowHandler(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, colored(configMap("web", "a"), "red"))
	c := newCache(t, server, cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: withColor("red")}}, Options{})
	start(t, c)
	i, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
	must(t, err)
	slow, removed := newLedger(t, &corev1.ConfigMap{}), newLedger(t, &corev1.ConfigMap{})
	slow.gate, removed.gate = make(chan struct{}), make(chan struct{})
	var registrations []toolscache.ResourceEventHandlerRegistration
	for _, l := range []*ledger{slow, removed} {
		r, err := i.AddEventHandler(l)
		must(t, err)
		registrations = append(registrations, r)
	}
	for n, color := range []string{"blue", "red", "blue"} {
		server.Update(t, configMaps, colored(configMap("web", "a", "n", fmt.Sprint(n)), color))
		if err := c.SetTypeSettings(t.Context(), &corev1.ConfigMap{}, TypeSettings{
			ByObject: withColor(color)}); err != nil {
			t.Fatal(err)
		}
		var got corev1.ConfigMap
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, &got); err != nil ||
			got.Data["n"] != fmt.Sprint(n) {
			t.Errorf("Get() = %v, %v, want version %d", got.Data, err, n)
		}
	}
	if slow.versions()["web/a"] != "" || registrations[0].HasSynced() {
		t.Error("the blocked handler received events")
	}
	must(t, i.RemoveEventHandler(registrations[1]))
	close(removed.gate)
	close(slow.gate)
	awaitEqual(t, "slow handler", func() map[string]string {
		return storedVersions(t, server, func(*unstructured.Unstructured) bool { return true })
	}, slow.versions)
	if len(removed.versions()) > 1 { // a running call may end
		t.Error("the removed handler was called")
	}
}

// TestSetTypeSettingsInParallel changes settings from several goroutines while others read, also by field,
// and remove an informer.
func TestSetTypeSettingsInParallel(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, colored(configMap("web", "a"), "red"), colored(configMap("web", "b"), "red"))
	c := newCache(t, server, cache.Options{}, Options{})
	if err := c.IndexField(t.Context(), &corev1.ConfigMap{}, "name",
		func(o client.Object) []string { return []string{o.GetName()} }); err != nil {
		t.Fatal(err)
	}
	start(t, c)
	defer writeRandomly(t, server)()
	var changing, reading sync.WaitGroup
	done := make(chan struct{})
	reading.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			var list corev1.ConfigMapList
			err := c.List(t.Context(), &list, client.MatchingFields{"name": "a"})
			if err == nil {
				err = client.IgnoreNotFound(c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"},
					&corev1.ConfigMap{}))
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	for _, by := range []cache.ByObject{withColor("red"),
		{Namespaces: map[string]cache.Config{"web": {}, "db": {}}}} {
		changing.Go(func() {
			for range 20 {
				err := c.SetTypeSettings(t.Context(), &corev1.ConfigMap{}, TypeSettings{ByObject: by})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	changing.Wait()
	close(done)
	reading.Wait()
	must(t, c.RemoveInformer(t.Context(), &corev1.ConfigMap{}))
	if n := len(c.Factory().Informers()); n != 0 {
		t.Errorf("%d informers remain, want 0", n)
	}
}
