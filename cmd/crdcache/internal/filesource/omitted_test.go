package filesource

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/internal/manifest"
)

// TestKeepIdentity verifies that other fields are not kept, except those of objects that must be decoded.
func TestKeepIdentity(t *testing.T) {
	const inJSON = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"b","namespace":"web","resourceVersion":"7"},"spec":{"color":"red"}}`
	s := openSource(t, Options{KeepIdentity: true, Paths: []string{writeTree(t, map[string]string{"0.yaml": widgetCRD,
		"a.yaml": widget("a", "red"), "b.json": inJSON})}})
	if got := colors(t, s); !slices.Equal(got, []string{"web/a red", "web/b "}) {
		t.Errorf("objects %q, want the color of a", got)
	}
}

// TestOmittedTypes verifies that only objects of the named types are kept, and that requests for others fail.
func TestOmittedTypes(t *testing.T) {
	const text = `{"apiVersion":"v1","kind":"List","items":[
{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b"}},
{"apiVersion":"v1","kind":"Secret","metadata":{"name":"a","namespace":"b"}},
{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"b"}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: c, namespace: b}
`
	widgetGVR := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	for name, wantPods := range map[string]int{"widgets": -1, "po": 2, "Pod.v1": 2, "*": 2, "all": 2,
		"pods.apps": -1} {
		t.Run(name, func(t *testing.T) {
			var received atomic.Int64
			s := openSource(t, Options{Paths: []string{manifest.Stdin}, In: strings.NewReader(text),
				Types: []string{name}, Received: &received})
			client := dynamic.NewForConfigOrDie(s.Config())
			widgets, err := client.Resource(widgetGVR).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(widgets.Items) != 1 {
				t.Errorf("list of widgets: %v, %v, want one", widgets, err)
			}
			list, err := client.Resource(pods).List(t.Context(), metav1.ListOptions{})
			switch {
			case wantPods >= 0 && (err != nil || len(list.Items) != wantPods):
				t.Errorf("list of pods: %v, %v, want %d", list, err, wantPods)
			case wantPods < 0 && !apierrors.IsForbidden(err):
				t.Errorf("list of pods: %v, %v, want an error", list, err)
			}
			if received.Load() != int64(len(text)) {
				t.Errorf("%d bytes were counted, want %d", received.Load(), len(text))
			}
		})
	}
}
