package requests

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/watchlist"
)

// IsWatchListSemanticsUnSupported returns true if the client lacks watch-lists, like fake clients.
func (l *listWatch) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(l.client)
}

// The result of Probe is not reported and does not affect backoff: the watch represents the server's health.
func (l *listWatch) Probe(ctx context.Context) (string, error) { return l.listVersion(ctx, false) }

// ListMetadata neither reports the request nor affects backoff, as Probe. A list of the newest objects does
// not wait for the client's rate limit.
func (l *listWatch) ListMetadata(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	l.Tweak(&options)
	if s := l.Selection; s != nil {
		options.ShardSelector = s.Ranges().requestRanges().Selector(s.Key)
	}
	release, err := l.limiter.AcquireFirst(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	request, a := newAttempt(ctx, listHeaderTimeout)
	defer a.end()
	objects := ObjectOptions{Packer: l.Objects.Packer, Metadata: true}
	list, err := newResource(l.client, l.GVR, l.Namespace, objects, nil).List(request, options,
		options.ResourceVersion != "")
	if err = a.resultError(request, err); err != nil {
		return nil, err
	}
	filterList(list, acceptBoth(l.Filter, l.Selects))
	return list, nil
}

func (l *listWatch) RelistRequested() { l.reports.RelistRequested() }
func (l *listWatch) Interrupt()       { l.interruption.interrupt() }

// CurrentVersion returns the server's current resource version, from a consistent list of one object. It
// retries with backoff until it succeeds or ctx ends.
func (l *listWatch) CurrentVersion(ctx context.Context) (version string, err error) {
	for {
		if err := l.pacer.awaitWatch(ctx); err != nil {
			return "", err
		}
		err = l.attemptMore(ctx, func(request context.Context) (err error) {
			version, err = l.reportedVersion(request, true)
			return err
		})
		if err == nil || ctx.Err() != nil {
			return version, err
		}
	}
}

// attemptMore makes a request with a slot of the limiter, and records the outcome as that of VerbListMore.
func (l *listWatch) attemptMore(ctx context.Context, list func(context.Context) error) error {
	release, err := l.limiter.Acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	request, a := l.attempt(ctx, VerbListMore)
	defer a.end()
	err = a.resultError(request, list(request))
	l.record(requestOutcome{verb: VerbListMore, err: err, retryAfter: a.retryAfter})
	return err
}

// ListPart requests a page of a list of the objects that accepts selects. tweak replaces Target.Tweak.
func (l *listWatch) ListPart(ctx context.Context, options metav1.ListOptions, tweak func(*metav1.ListOptions),
	accepts func(runtime.Object) bool) (list runtime.Object, err error) {
	if err := l.pacer.awaitWatch(ctx); err != nil {
		return nil, err
	}
	tweak(&options)
	err = l.attemptMore(ctx, func(request context.Context) (err error) {
		l.reports.RequestStarted(VerbListMore)
		list, err = l.resource.List(request, options, true)
		return err
	})
	if err != nil {
		return nil, err
	}
	filterList(list, acceptBoth(l.filter, accepts))
	return list, nil
}

// reportedVersion returns the resource version of a consistent list of one object. It reports the request as
// VerbListMore, because VerbList would count as the first list of the type.
func (l *listWatch) reportedVersion(ctx context.Context, limited bool) (string, error) {
	l.reports.RequestStarted(VerbListMore)
	return l.listVersion(ctx, limited)
}

func (l *listWatch) listVersion(ctx context.Context, limited bool) (string, error) {
	options := metav1.ListOptions{Limit: 1}
	l.Tweak(&options)
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
