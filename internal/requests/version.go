package requests

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
)

// listerWatcher is the ListerWatcher of an informer.
type listerWatcher struct {
	*cache.ListWatch
	requests *listWatch
	client   dynamic.Interface
}

func (l listerWatcher) Panicked(value any) { l.requests.panicked(value) }

// IsWatchListSemanticsUnSupported returns true if the client lacks watch-lists, like fake clients.
func (l listerWatcher) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(l.client)
}

func (l listerWatcher) CurrentVersion(ctx context.Context) (string, error) {
	return l.requests.awaitVersion(ctx)
}

// Probe returns the server's current resource version. It sends one request while a watch is open. The
// request is not reported and does not change the pace of requests: the watch shows the server's health.
func (l listerWatcher) Probe(ctx context.Context) (string, error) {
	return l.requests.listVersion(ctx, false)
}

func (l listerWatcher) Interrupt() { l.requests.interruption.interrupt() }

func (l listerWatcher) WatchInline(ctx context.Context, options *metav1.ListOptions,
	take func(watch.Event) bool) error {
	return l.requests.watchInline(ctx, options, take)
}

// awaitVersion returns the server's current resource version, from a consistent list of one object. It
// retries with pauses until the server answers.
func (l *listWatch) awaitVersion(ctx context.Context) (string, error) {
	for {
		if err := l.pacer.awaitWatch(ctx); err != nil {
			return "", err
		}
		version, err := l.attemptVersion(ctx)
		if err == nil || ctx.Err() != nil {
			return version, err
		}
	}
}

func (l *listWatch) attemptVersion(ctx context.Context) (string, error) {
	release, err := l.limiter.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	request, a := l.attempt(ctx, VerbListMore, metav1.ListOptions{})
	defer a.end()
	version, err := l.reportedVersion(request, true)
	err = a.resultError(request, err)
	l.record(requestOutcome{verb: VerbListMore, err: err, retryAfter: a.retryAfter,
		headersLate: a.headersLate})
	return version, err
}

// unlimitedVersion returns the resource version of a most recent (consistent) list of one object. It is not
// rate-limited, because watches wait for it.
func (l *listWatch) unlimitedVersion(ctx context.Context) (string, error) {
	return l.reportedVersion(ctx, false)
}

// reportedVersion returns the resource version of a list of one object. It reports the request as a further
// page: a reported list would count as the list of the type, which may still follow.
func (l *listWatch) reportedVersion(ctx context.Context, limited bool) (string, error) {
	l.reports.RequestStarted(VerbListMore)
	return l.listVersion(ctx, limited)
}

func (l *listWatch) listVersion(ctx context.Context, limited bool) (string, error) {
	options := metav1.ListOptions{Limit: 1}
	l.tweak(&options)
	list, err := l.resource.List(ctx, options, limited)
	if err != nil {
		return "", err
	}
	answer, err := meta.ListAccessor(list)
	if err != nil {
		return "", err
	}
	return answer.GetResourceVersion(), nil
}
