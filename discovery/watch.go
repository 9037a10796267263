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
	"k8s.io/utils/clock"

	"github.com/crdcache/crdcache/internal/newer"
	"github.com/crdcache/crdcache/internal/requests"
)

// watchTarget receives the objects of a reflector, and the outcomes of its requests.
type watchTarget interface {
	cache.TransformingStore
	onSuccess()
	// onFailure is called for every failed request. A failed watch-list is followed by a list, a failed list
	// by a pause.
	onFailure(err error, list bool)
	// onForbidden is called for failed lists if the resource may not be read or does not exist. A failed
	// watch does not prove that the server works.
	onForbidden()
}

// runReflector updates target from a resource of the kube-apiserver until ctx ends.
func runReflector(ctx context.Context, client dynamic.Interface, restores *requests.RestoreDetector,
	gvr schema.GroupVersionResource, target watchTarget) {
	resource := client.Resource(gvr)
	continuity := restores.Continuity(requests.VersionCounter(gvr, true),
		func(ctx context.Context) (string, error) {
			list, err := resource.List(ctx, metav1.ListOptions{Limit: 1})
			if err != nil {
				return "", err
			}
			return list.GetResourceVersion(), nil
		})
	listWatch := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			continuity.BeforeList(&options)
			list, err := resource.List(ctx, options)
			continuity.Failed(err)
			if err != nil {
				reportFailure(ctx, target, err, true)
				return nil, err
			}
			target.onSuccess()
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			w, err := watchOn(ctx, resource, continuity, options)
			continuity.Failed(err)
			if err != nil {
				reportFailure(ctx, target, err, false)
				return nil, avoidReflectorSleep(options, err)
			}
			target.onSuccess()
			return w, nil
		},
	}
	// No logger: failures are in the status, and a missing permission should not be logged every few seconds.
	logger := klog.Logger{}
	reflectorOptions := cache.ReflectorOptions{Name: "crdcache discovery", TypeDescription: gvr.String()}
	newer.SetLogger(&reflectorOptions, &logger)
	newer.SetBackoff(&reflectorOptions, watchBackoff(), clock.RealClock{})
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(listWatch, client),
		nil,
		target, reflectorOptions)
	reflector.RunWithContext(klog.NewContext(ctx, logger))
}

// watchOn opens a watch, unless the server was restored from a backup since the last list.
func watchOn(ctx context.Context, resource dynamic.ResourceInterface, continuity *requests.Continuity,
	options metav1.ListOptions) (watch.Interface, error) {
	if requestsInitialEvents(options) {
		continuity.BeforeList(&options)
	} else if err := continuity.BeforeWatch(ctx, &options); err != nil {
		return nil, err
	}
	w, err := resource.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	return continuity.Follow(ctx, w, requestsInitialEvents(options)), nil
}

// watchBackoff returns the backoff of a reflector. client-go's grows up to a minute and is only reset after
// two minutes without failures, which would delay changes of types. The few requests of each program do not
// burden a server.
func watchBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10,
		Cap: 4 * time.Second}
}

func reportFailure(ctx context.Context, target watchTarget, err error, list bool) {
	if ctx.Err() != nil {
		return
	}
	target.onFailure(err, list)
	if list && (apierrors.IsForbidden(err) || apierrors.IsNotFound(err) ||
		apierrors.IsMethodNotSupported(err)) {
		target.onForbidden()
	}
}

// avoidReflectorSleep hides the type of an error of an initial watch-list from the reflector. If the server
// refuses connections or is busy, the reflector would sleep up to a minute without checking its context.
// Otherwise it lists, with a backoff that ends with the context.
func avoidReflectorSleep(options metav1.ListOptions, err error) error {
	if requestsInitialEvents(options) &&
		(utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)) {
		return fmt.Errorf("open watch-list: %v", err)
	}
	return err
}

func requestsInitialEvents(options metav1.ListOptions) bool {
	return options.SendInitialEvents != nil && *options.SendInitialEvents
}

// jitter spreads d by a fifth in both directions. r is random in [0, 1).
func jitter(d time.Duration, r float64) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*r))
}
