package dynamicinformer_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/compat/dynamicinformer"
	crdcache "github.com/crdcache/crdcache/dynamicinformer"
)

func byColor(obj any) ([]string, error) {
	return []string{obj.(*unstructured.Unstructured).GetLabels()["color"]}, nil
}

func TestInformerRefusesTakenIndex(t *testing.T) {
	onEach(t, func(t *testing.T, client func(...*unstructured.Unstructured) dynamic.Interface, api api) {
		byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		informer := api.informer(client(), widgets, "", 0, byNamespace, nil).Informer()
		if err := informer.AddIndexers(byNamespace); err == nil {
			t.Error("AddIndexers() with an existing index succeeded, want an error")
		}
	})
}

// TestBrokenInformer verifies that an informer that cannot work never syncs, and reports the reason.
func TestBrokenInformer(t *testing.T) {
	client := clients["fake"](t)
	tests := []struct {
		reason   string
		client   dynamic.Interface
		gvr      schema.GroupVersionResource
		indexers cache.Indexers
		want     string
	}{
		{"no client", nil, widgets, nil, "Client"},
		{"no version", client, schema.GroupVersionResource{Group: "example.com", Resource: "widgets"}, nil,
			"lacks a version"},
		{"no resource", client, schema.GroupVersionResource{Group: "example.com", Version: "v1"}, nil,
			"lacks a version or a resource"},
		{"nil index function", client, widgets, cache.Indexers{"color": nil}, `"color" is nil`},
		{"another index by namespace", client, widgets, cache.Indexers{cache.NamespaceIndex: byColor},
			`"namespace" has another function`},
		{"a nil index by namespace", client, widgets, cache.Indexers{cache.NamespaceIndex: nil},
			`"namespace" has another function`},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			generic := dynamicinformer.NewFilteredDynamicInformer(test.client, test.gvr, "", 0,
				test.indexers, nil)
			informer := generic.Informer()
			failures := make(chan error, 1)
			if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
				select {
				case failures <- err:
				default:
				}
			}); err != nil {
				t.Fatal(err)
			}
			stop, done := make(chan struct{}), make(chan struct{})
			go func() { // ended by stop
				defer close(done)
				informer.Run(stop)
			}()
			if err := <-failures; !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %q, want it to contain %q", err, test.want)
			}
			if informer.HasSynced() {
				t.Error("HasSynced() = true for an informer that cannot work")
			}
			if list, err := generic.Lister().List(labels.Everything()); err != nil || len(list) != 0 {
				t.Errorf("the lister returns %v, %v; want nothing", list, err)
			}
			close(stop)
			<-done
		})
	}
}

// TestStorage checks that objects are stored unchanged, or packed if Packed is set.
func TestStorage(t *testing.T) {
	client := clients["fake"](t)
	for want, client := range map[crdcache.StorageMode]dynamic.Interface{
		crdcache.StorageObject: client, crdcache.StoragePacked: dynamicinformer.Packed(client),
	} {
		f := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		informer, ok := f.ForResource(widgets).(*crdcache.Informer)
		if !ok || informer.Stats().Storage != want.String() {
			t.Errorf("the storage is %v, want %v", informer.Stats().Storage, want)
		}
	}
}
