package controllerruntime

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestFakeClientAnswersAlike compares reads from this cache with reads from controller-runtime's fake
// client.
func TestFakeClientAnswersAlike(t *testing.T) {
	byColor := func(object client.Object) []string {
		return []string{object.(*corev1.ConfigMap).Data["color"]}
	}
	server := newServer(t)
	builder := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithIndex(&corev1.ConfigMap{},
		"data.color", byColor)
	for name, color := range map[string]string{"a": "red", "b": "blue", "c": "red"} {
		u := labelled(configMap("web", name, "color", color), map[string]string{"app": name})
		server.Create(t, configMaps, u)
		builder.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: name,
			Labels: u.GetLabels()}, Data: map[string]string{"color": color}})
	}
	c := newCache(t, server, cache.Options{}, Options{})
	if err := c.IndexField(t.Context(), &corev1.ConfigMap{}, "data.color", byColor); err != nil {
		t.Fatal(err)
	}
	start(t, c)
	names := func(reader client.Reader, options ...client.ListOption) (names []string) {
		t.Helper()
		var list corev1.ConfigMapList
		if err := reader.List(t.Context(), &list, options...); err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			names = append(names, item.Namespace+"/"+item.Name+" "+item.Data["color"])
		}
		return names
	}
	fakeClient := builder.Build()
	for name, options := range map[string][]client.ListOption{
		"all":       nil,
		"field":     {client.MatchingFields{"data.color": "red"}},
		"label":     {client.MatchingLabels{"app": "b"}},
		"both":      {client.MatchingFields{"data.color": "red"}, client.MatchingLabels{"app": "c"}},
		"namespace": {client.InNamespace("none")},
	} {
		want, got := names(fakeClient, options...), names(c, options...)
		if diff := cmp.Diff(want, got, cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Errorf("%s (-fake +ours):\n%s", name, diff)
		}
	}
	for _, reader := range []client.Reader{fakeClient, c} {
		var found corev1.ConfigMap
		if err := reader.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "b"},
			&found); err != nil || found.Data["color"] != "blue" {
			t.Errorf("%T: Get() = %v, %v, want blue", reader, found.Data, err)
		}
		if err := reader.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "z"},
			&found); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("%T: Get() of a missing object = %v, want NotFound", reader, err)
		}
	}
}
