package discovery

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/requests"
)

// watchTarget receives the objects of a reflector, and the outcomes of its requests.
type watchTarget interface {
	cache.TransformingStore
	onSuccess()
	// onFailure is called for every failed request.
	onFailure(err error, list bool)
	// onForbidden is called for failed lists if the resource may not be read or does not exist. A failed
	// watch does not prove that the server works.
	onForbidden()
}

// runReflector updates target from a resource of the kube-apiserver until ctx ends.
func runReflector(ctx context.Context, reader *requests.Reader, gvr schema.GroupVersionResource,
	target watchTarget) {
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := reader.List(ctx, options)
			reportOutcome(ctx, target, err, true)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := reader.Watch(ctx, options)
			reportOutcome(ctx, target, err, false)
			return w, err
		},
	}
	// No logger: failures are in the status, and a missing permission should not be logged every few seconds.
	logger := klog.Logger{}
	// client-go's backoff grows up to a minute and is only reset after two minutes without failures, which
	// would delay changes of types. The few requests of each program do not burden a server.
	backoff := wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10,
		Cap: 4 * time.Second}
	reflectorOptions := cache.ReflectorOptions{Name: "crdcache discovery", TypeDescription: gvr.String(),
		Logger: &logger, Backoff: &backoff}
	// A watch-list would need a buffer for the largest object and, while it is open, a decompressor.
	reflector := cache.NewReflectorWithOptions(
		cache.ToListWatcherWithWatchListSemantics(listWatch,
			withoutWatchLists{}), nil, target, reflectorOptions)
	reflector.RunWithContext(klog.NewContext(ctx, logger))
}

// withoutWatchLists implements the interface by which clients make reflectors list.
type withoutWatchLists struct{}

// IsWatchListSemanticsUnSupported implements the unexported interface of client-go.
func (withoutWatchLists) IsWatchListSemanticsUnSupported() bool { return true }

// unreadMetadata are fields that the tracker does not read.
var unreadMetadata = []string{"metadata.managedFields", "metadata.annotations"}

func reportOutcome(ctx context.Context, target watchTarget, err error, list bool) {
	switch {
	case err == nil:
		target.onSuccess()
		return
	case ctx.Err() != nil || requests.ReasonOf(err) == status.ReasonNone:
		return
	}
	target.onFailure(err, list)
	if list && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err) ||
		apierrors.IsMethodNotSupported(err)) {
		target.onForbidden()
	}
}
