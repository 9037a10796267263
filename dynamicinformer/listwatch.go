package dynamicinformer

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
			initial := o.SendInitialEvents != nil && *o.SendInitialEvents
			tweak(&o)
			w, err := resource.Watch(ctx, o)
			h.request(err)
			if err != nil && initial && utilnet.IsConnectionRefused(err) {
				err = &refusedError{cause: err}
			}
			return w, err
		},
	}, client)
}

// refusedError is a refused connection that the reflector does not recognise as one. While it waits to
// repeat an initial watch-list it does not look at its context, for up to a minute; with this error it
// goes on to a list instead, fails there, and waits in a way that a shutdown ends.
type refusedError struct{ cause error }

func (e *refusedError) Error() string { return fmt.Sprintf("starting a watch-list: %v", e.cause) }
