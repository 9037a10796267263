package informer

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	"github.com/crdcache/crdcache/internal/queue"
)

// channelWatcher makes an InlineWatcher of another ListerWatcher, for one partition that needs no version of
// the server. It does not pause: a list follows each watch that fails, with the pauses of the informer.
type channelWatcher struct {
	cache.ListerWatcherWithContext
	isWithoutWatchLists bool
	interrupted         chan struct{}
}

// InlineWatcherOf returns an InlineWatcher for one partition without State and Selection. Callers cannot wait
// for versions.
func InlineWatcherOf(lw cache.ListerWatcher) InlineWatcher {
	return channelWatcher{cache.ToListerWatcherWithContext(lw),
		watchlist.DoesClientNotSupportWatchListSemantics(lw), make(chan struct{}, 1)}
}

var errShortWatch = errors.New("the watch ended at once, without an event")

func (c channelWatcher) WatchInline(ctx context.Context, options *metav1.ListOptions,
	take func(watch.Event) bool) error {
	w, err := c.WatchWithContext(ctx, *options)
	if err != nil {
		return err
	}
	defer w.Stop()
	for begun, received := time.Now(), false; ; received = true {
		select {
		case <-ctx.Done():
			return nil
		case <-c.interrupted:
			return nil
		case event, ok := <-w.ResultChan():
			switch err := apierrors.FromObject(event.Object); {
			case !ok && !received && time.Since(begun) < time.Second:
				return errShortWatch
			case event.Type == watch.Error && apierrors.IsTooManyRequests(err):
				return err
			case !ok || !take(event):
				return nil
			}
		}
	}
}

func (c channelWatcher) Interrupt() { queue.Wake(c.interrupted) }

func (c channelWatcher) ListMetadata(ctx context.Context,
	options metav1.ListOptions) (runtime.Object, error) {
	return c.ListWithContext(ctx, options)
}

func (channelWatcher) ListPart(context.Context, metav1.ListOptions, func(*metav1.ListOptions),
	func(runtime.Object) bool) (runtime.Object, error) {
	return nil, errors.ErrUnsupported
}

func (channelWatcher) Probe(context.Context) (string, error) { return "", errors.ErrUnsupported }

func (c channelWatcher) CurrentVersion(ctx context.Context) (string, error) { return c.Probe(ctx) }

func (c channelWatcher) IsWatchListSemanticsUnSupported() bool { return c.isWithoutWatchLists }
func (channelWatcher) Polls() bool                             { return false }
func (channelWatcher) RelistRequested()                        {}
func (channelWatcher) ListReceived(error)                      {}
func (channelWatcher) ListStored(bool)                         {}
