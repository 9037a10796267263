package dynamicinformer

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// newListWatch returns what a reflector lists and watches a type through. It reports the outcome of each
// request to h, because refused connections, throttling and failing watches never reach a reflector's
// watch error handler.
func newListWatch(client dynamic.Interface, gvr schema.GroupVersionResource, options ResourceOptions, h *health) cache.ListerWatcher {
	resource := dynamic.ResourceInterface(client.Resource(gvr))
	if options.Namespaces.limited() && len(options.Namespaces.names) == 1 {
		resource = client.Resource(gvr).Namespace(options.Namespaces.names[0])
	}
	keep := options.Namespaces.filter()
	tweak := func(o *metav1.ListOptions) {
		if options.LabelSelector != nil {
			o.LabelSelector = options.LabelSelector.String()
		}
		if options.FieldSelector != nil {
			o.FieldSelector = options.FieldSelector.String()
		}
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
			if keep != nil {
				list.Items = slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool { return !keep(&u) })
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			initial := o.SendInitialEvents != nil && *o.SendInitialEvents
			tweak(&o)
			w, err := resource.Watch(ctx, o)
			switch {
			case err == nil:
				h.request(nil)
				return newStream(w, streamHooks{initial: initial, keep: keep}), nil
			case !initial || repeated(err):
				// client-go does not read what the server says of a watch that it refuses.
				h.request(fmt.Errorf("watch: %w", err))
			}
			return nil, err
		},
	}, client)
}

// repeated reports whether the reflector tries a watch-list that failed with err again. After any other
// failure it lists at once: that tells whether the type can be read, and what the server has to say.
func repeated(err error) bool {
	return utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)
}
