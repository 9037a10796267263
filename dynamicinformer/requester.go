package dynamicinformer

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/follow"
	"github.com/crdcache/crdcache/internal/requests"
)

// requester sends the requests of an informer for its follower.
type requester struct{ *Informer }

var _ follow.Requests = requester{}

// ListWatch implements follow.Requests.
func (r requester) ListWatch(p follow.Part, forbidden func(error)) cache.ListerWatcher {
	return r.source.ListWatch(r.target(p), r.health.Reporter(p.Generation, p.Name, p.Joins...),
		r.pacer(p), forbidden)
}

// AwaitPermission implements follow.Requests.
func (r requester) AwaitPermission(ctx context.Context, p follow.Part, refusal error) bool {
	return r.source.AwaitPermission(ctx, r.target(p), r.pacer(p), refusal)
}

func (r requester) target(p follow.Part) requests.Target {
	gvr := r.gvr.GroupResource().WithVersion(p.Version)
	return requests.Target{
		GVR: gvr, Namespace: p.Namespace, Form: r.form,
		Tweak: r.options.tweak(gvr), Keep: r.options.Namespaces.set.Filter(),
		Selection: p.Selection, Custom: p.Custom, NoBookmarks: r.options.noBookmarks(),
	}
}

func (r requester) pacer(p follow.Part) *requests.Pacer {
	return requests.NewPacer(p.Known, p.Late, r.retry)
}
