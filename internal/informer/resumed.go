package informer

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// errResumed is what a reflector is answered that would begin with a watch-list although the content is
// there: it lists then.
var errResumed = errors.New("the content is there already")

// resumed has a reflector that does all by itself begin with a watch. It answers the reflector's first list
// with nothing but the resource version, and keeps what follows from that away from the store, which has the
// content already.
type resumed struct {
	target
	cache.ListerWatcherWithContext
	// version is what the content has come to, latest what some of it has, or empty.
	version, latest string
	// answers says that the first list has still to be answered, skips that its result has still to come.
	answers, skips bool
}

var (
	_ cache.ReflectorStore         = (*resumed)(nil)
	_ cache.TransformingStore      = (*resumed)(nil)
	_ cache.ReflectorBookmarkStore = (*resumed)(nil)
	_ cache.ListerWatcher          = (*resumed)(nil)
)

// List implements cache.ListerWatcher.
func (r *resumed) List(options metav1.ListOptions) (runtime.Object, error) {
	return r.ListWithContext(context.Background(), options)
}

// Watch implements cache.ListerWatcher.
func (r *resumed) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return r.WatchWithContext(context.Background(), options)
}

// ListWithContext implements cache.ListerWithContext.
func (r *resumed) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if !r.answers {
		r.renew(&options)
		return r.ListerWatcherWithContext.ListWithContext(ctx, options)
	}
	r.answers, r.skips = false, true
	list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List"}}
	list.SetResourceVersion(r.version)
	return list, nil
}

// WatchWithContext implements cache.WatcherWithContext.
func (r *resumed) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		if r.answers {
			return nil, errResumed
		}
		r.renew(&options)
	}
	return r.ListerWatcherWithContext.WatchWithContext(ctx, options)
}

// renew has everything be listed as it was when some of it was last seen, or later.
func (r *resumed) renew(options *metav1.ListOptions) {
	if !unordered(options.ResourceVersion) &&
		options.ResourceVersionMatch != metav1.ResourceVersionMatchExact {
		options.ResourceVersion = later(options.ResourceVersion, r.latest)
	}
}

// Replace implements cache.ReflectorStore.
func (r *resumed) Replace(list []any, resourceVersion string) error {
	if r.skips {
		r.skips = false
		return nil
	}
	return r.target.Replace(list, resourceVersion)
}
