package dynamicinformer

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// newListWatch returns what a reflector lists and watches a type through. It reports the outcome of each
// request to h, because refused connections, throttling and failing watches never reach a reflector's
// watch error handler.
func newListWatch(client dynamic.Interface, gvr schema.GroupVersionResource, options Options, h *health) cache.ListerWatcher {
	resource := dynamic.ResourceInterface(client.Resource(gvr))
	if options.Namespace != "" {
		resource = client.Resource(gvr).Namespace(options.Namespace)
	}
	tweak := func(o *metav1.ListOptions) {
		if options.TweakListOptions != nil {
			options.TweakListOptions(gvr, o)
		}
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			tweak(&o)
			list, err := resource.List(ctx, o)
			h.request(err)
			if err != nil {
				return nil, err // not the nil list in a non-nil interface
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			tweak(&o)
			w, err := resource.Watch(ctx, o)
			h.request(err)
			return w, err
		},
	}, client)
}
