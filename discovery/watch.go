package discovery

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/requests"
)

// watchReports is told how the requests of a reflector went.
type watchReports struct {
	ok func()
	// failed gets every failed request. A failed watch-list is followed by a list, a failed list by a
	// pause.
	failed func(err error, list bool)
	// denied gets failed lists that say that the resource may not be read or does not exist. A failed
	// watch is no such proof.
	denied func(error)
}

// runReflector keeps store up to date with a resource until ctx ends. It is for resources of the
// kube-apiserver.
func runReflector(ctx context.Context, client dynamic.Interface, restores *requests.Restores,
	gvr schema.GroupVersionResource, store cache.ReflectorStore, reports watchReports) {
	resource := client.Resource(gvr)
	continuity := restores.Continuity(requests.VersionCounter(gvr, true),
		func(ctx context.Context) (string, error) {
			list, err := resource.List(ctx, metav1.ListOptions{Limit: 1})
			if err != nil {
				return "", err
			}
			return list.GetResourceVersion(), nil
		})
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			continuity.Listing(&options)
			list, err := resource.List(ctx, options)
			continuity.Failed(err)
			if err != nil {
				reports.report(ctx, err, true)
				return nil, err
			}
			reports.ok()
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := watchOn(ctx, resource, continuity, options)
			continuity.Failed(err)
			if err != nil {
				reports.report(ctx, err, false)
				return nil, interruptible(options, err)
			}
			reports.ok()
			return w, nil
		},
	}
	// No logger: what goes wrong is in the status, and a missing right is no error worth a line every
	// few seconds.
	logger := klog.Logger{}
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, client),
		nil, store,
		cache.ReflectorOptions{Name: "crdcache discovery", TypeDescription: gvr.String(), Logger: &logger,
			Backoff: watchBackoff()})
	reflector.RunWithContext(klog.NewContext(ctx, logger))
}

// watchOn opens a watch, unless the server was restored from a backup since the last list.
func watchOn(ctx context.Context, resource dynamic.ResourceInterface, continuity *requests.Continuity,
	options metav1.ListOptions) (watch.Interface, error) {
	if initialEvents(options) {
		continuity.Listing(&options)
	} else if err := continuity.Watching(ctx, &options); err != nil {
		return nil, err
	}
	w, err := resource.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	return continuity.Follow(ctx, w, initialEvents(options)), nil
}

// watchBackoff is how a reflector spaces its requests after failures. client-go's own pauses grow up to a
// minute, and begin anew only after two minutes without any: for that long, nobody would learn that a type
// has come or gone. These are a few requests of each program, so that shorter pauses burden no server.
func watchBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10,
		Cap: 4 * time.Second}
}

func (r watchReports) report(ctx context.Context, err error, list bool) {
	if ctx.Err() != nil {
		return
	}
	r.failed(err, list)
	if list && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err) ||
		apierrors.IsMethodNotSupported(err)) {
		r.denied(err)
	}
}

// interruptible hides from the reflector why an initial watch-list could not be opened. When it knows
// that the server refuses connections or is busy, it sleeps up to a minute without looking at its
// context; otherwise it falls back to a list, whose backoff ends with the context.
func interruptible(options metav1.ListOptions, err error) error {
	if initialEvents(options) && (utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)) {
		return fmt.Errorf("open watch-list: %v", err)
	}
	return err
}

// initialEvents reports whether a watch begins with what exists.
func initialEvents(options metav1.ListOptions) bool {
	return options.SendInitialEvents != nil && *options.SendInitialEvents
}

// jitter spreads d by a fifth in both directions. r is random in [0, 1).
func jitter(d time.Duration, r float64) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*r))
}
