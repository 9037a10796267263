package controllerruntime

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// optionSets are combinations of options that select objects.
func optionSets() map[string]cache.Options {
	red, blue := labels.SelectorFromSet(labels.Set{"color": "red"}),
		labels.SelectorFromSet(labels.Set{"color": "blue"})
	named := fields.OneTermEqualSelector("metadata.name", "a")
	return map[string]cache.Options{
		"nothing": {},
		"label":   {DefaultLabelSelector: red},
		"field":   {DefaultFieldSelector: named},
		"field of a namespace": {DefaultFieldSelector: fields.OneTermEqualSelector("metadata.namespace",
			"web")},
		"namespace": {DefaultNamespaces: map[string]cache.Config{"web": {}}},
		"namespaces": {DefaultNamespaces: map[string]cache.Config{"web": {LabelSelector: red},
			"db": {}}, DefaultLabelSelector: blue},
		"all but": {DefaultNamespaces: map[string]cache.Config{"web": {LabelSelector: red},
			cache.AllNamespaces: {LabelSelector: blue}}},
		"not defaulted": {DefaultNamespaces: map[string]cache.Config{"web": {LabelSelector: labels.
			Everything()}}, DefaultLabelSelector: blue},
		"object": {ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Label: red}}, DefaultLabelSelector: blue},
		"object and namespaces": {ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Label: red}},
			DefaultNamespaces: map[string]cache.Config{"web": {FieldSelector: named},
				"db": {LabelSelector: blue}}},
		"object in namespaces": {
			ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Field: named,
				Namespaces: map[string]cache.Config{"web": {}, cache.AllNamespaces: {LabelSelector: red}}}},
			DefaultNamespaces: map[string]cache.Config{"db": {}},
		},
		"object in all": {ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
			Namespaces: map[string]cache.Config{}}}, DefaultNamespaces: map[string]cache.Config{"db": {}}},
		"cluster-scoped": {ByObject: map[client.Object]cache.ByObject{&corev1.Namespace{}: {Field: named}},
			DefaultNamespaces: map[string]cache.Config{"db": {}}},
	}
}

// TestSettingsEqualStockCache verifies that both caches return the same objects and errors for all settings,
// forms and namespaces.
func TestSettingsEqualStockCache(t *testing.T) {
	server := newServer(t)
	for _, namespace := range []string{"web", "db", "other"} {
		server.Create(t, namespaces, object(namespaceKind, "", namespace))
		for name, color := range map[string]string{"a": "red", "b": "blue", "c": "red"} {
			server.Create(t, configMaps, labelled(configMap(namespace, name),
				map[string]string{"color": color}))
		}
	}
	server.Create(t, namespaces, object(namespaceKind, "", "a"))
	for name, options := range optionSets() {
		t.Run(name, func(t *testing.T) {
			ours := newCache(t, server, options, Options{})
			options.Mapper = newMapper()
			stock, err := cache.New(server.Config(), options)
			must(t, err)
			start(t, ours)
			start(t, stock)
			var all []client.ObjectList
			for _, list := range lists() {
				all = append(all, list)
			}
			// the server rejects this field selector for a cluster-scoped type
			if name != "field of a namespace" {
				all = append(all, &corev1.NamespaceList{})
			}
			for _, list := range all {
				for _, namespace := range []string{"", "web", "db", "other"} {
					got, want := list.DeepCopyObject().(client.ObjectList),
						list.DeepCopyObject().(client.ObjectList)
					err, wantErr := ours.List(t.Context(), got, client.InNamespace(namespace)), stock.
						List(t.Context(), want, client.InNamespace(namespace))
					if textOf(err) != textOf(wantErr) {
						t.Errorf("%T in %q: %v; the stock cache: %v", list, namespace, err, wantErr)
					}
					if diff := cmp.Diff(objectNames(t, want), objectNames(t, got)); diff != "" {
						t.Errorf("%T in %q (-stock +ours):\n%s", list, namespace, diff)
					}
					key := client.ObjectKey{Namespace: namespace, Name: "a"}
					err, wantErr = ours.Get(t.Context(), key, &corev1.ConfigMap{}), stock.Get(t.Context(),
						key, &corev1.ConfigMap{})
					if textOf(err) != textOf(wantErr) {
						t.Errorf("Get %s: %v; the stock cache: %v", key, err, wantErr)
					}
				}
			}
		})
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestWithoutBookmarks verifies that no watch requests bookmarks.
func TestWithoutBookmarks(t *testing.T) {
	server := newServer(t)
	c := newCache(t, server, cache.Options{DefaultEnableWatchBookmarks: new(false)},
		Options{Types: fixedTypes(allTypes)})
	start(t, c)
	must(t, c.List(t.Context(), &corev1.ConfigMapList{}))
	server.AwaitRequest(t, "/api/v1/configmaps", "watch")
	for _, r := range server.Requests() {
		if strings.Contains(r, "configmaps") && strings.Contains(r, "ookmark") {
			t.Errorf("the cache sent %s, want no bookmarks", r)
		}
	}
}

// TestRefusedOptions checks that New reports all invalid options.
func TestRefusedOptions(t *testing.T) {
	server := newServer(t)
	bad := map[string]struct {
		options      cache.Options
		cacheOptions Options
		want         string
	}{
		"namespaces of a cluster-scoped type": {cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Namespace{}: {Namespaces: map[string]cache.Config{}}}}, Options{}, "is not namespaced"},
		"unknown type": {cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {}}}, Options{}, "failed to determine if *v1.Pod is namespaced"},
		"negative period": {cache.Options{SyncPeriod: new(-time.Second)}, Options{}, "SyncPeriod is -1s"},
		"negative period of a type": {cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {SyncPeriod: new(-time.Second)}}}, Options{}, "SyncPeriod is -1s"},
	}
	for name, tt := range bad {
		t.Run(name, func(t *testing.T) {
			tt.options.Mapper = newMapper()
			if _, err := New(server.Config(), tt.options, tt.cacheOptions); err == nil ||
				!strings.Contains(err.Error(), tt.want) {
				t.Errorf("New() = %v, want %q", err, tt.want)
			}
		})
	}
}

// TestSecondStart checks that the second Start returns an error.
func TestSecondStart(t *testing.T) {
	c := newCache(t, newServer(t), cache.Options{}, Options{})
	start(t, c)
	if err := c.Start(t.Context()); err == nil || err.Error() != "informer already started" {
		t.Error(err)
	}
	if c.NeedLeaderElection() {
		t.Error("NeedLeaderElection() = true, want false")
	}
}
