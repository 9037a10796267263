// Package follow has an informer follow its type: it begins a generation whenever the type is there to be
// followed, reads it in the namespaces that are wanted, from one version to the next, and ends the generation
// when the type is gone. It decides; the requests are sent, the objects kept, and the status told by others,
// whom it knows by narrow interfaces.
package follow

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/requests"
)

// Follower follows one type, in some versions and namespaces of it.
type Follower struct {
	// Type is what was asked for. Its version may be empty, or another one than is followed, where Versions
	// choose.
	Type       schema.GroupVersionResource
	Versions   Versions
	Namespaces Namespaces
	// Shard is what is followed of a hash space; nil: there is none, and everything is followed.
	Shard *Shard
	// Nothing says that no object is wanted: nothing is requested, and the cache is filled at once, with
	// nothing.
	Nothing bool
	// Board tells which types there are; nil: every type is taken to exist.
	Board *Board

	Requests Requests
	Cache    Cache
	Health   Health
	// Past returns what an earlier process kept of a part that is alone, or of several namespaces, of a type
	// whose CRD has this UID; nil: nothing is kept.
	Past func(p Part, uid types.UID) informer.Past
	// AllNamespaces tells which namespaces there are, for sets of them where not everything may be read at
	// once.
	AllNamespaces func() (NamespaceList, error)
}

// Requests list and watch the type.
type Requests interface {
	// ListWatch returns what a reflector lists and watches a part of a generation through. forbidden, unless
	// it is nil, is called when that is forbidden, which is then no failure.
	ListWatch(p Part, forbidden func(error)) cache.ListerWatcher
	// AwaitRight waits until a part, which is refused, may be listed and watched. It returns false when ctx
	// ends before.
	AwaitRight(ctx context.Context, p Part, refusal error) bool
	// Retry ends the pauses after failures.
	Retry()
}

// Part is what is read of a type in one generation: a version, in a namespace or (empty) all.
type Part struct {
	Generation         int
	Version, Namespace string
	// Name is what reporters know the part by: the namespace, unless there are several parts in one.
	Name string
	// Several says that namespaces are read one by one, and this stands for all of them.
	Several bool
	// Selection is what is read of a shard; nil: everything.
	Selection *requests.Selection
	// Joins are the names of the parts whose place it takes.
	Joins []string
	// Known says that a source of types says that the type is there, Late that the namespace has come while
	// the type was followed, so that rights in it may come a moment later.
	Known, Late bool
	// Custom says that the type is known to have a CRD.
	Custom bool
}

// Cache keeps the objects. An *informer.Informer is one.
type Cache interface {
	RunParts(ctx context.Context, listed func(), parts ...informer.Part) error
	RunChangingParts(ctx context.Context, listed func(),
		next func(context.Context) ([]informer.Part, bool)) error
	RunEmpty(ctx context.Context, listed func()) error
	Forget() error
}

// Health is told how the type is followed. A *health.Health is one.
type Health interface {
	Seen(exists, terminating bool)
	Pending(reason requests.Reason, cause error)
	Begin(version string, uid types.UID) (generation int)
	Consists(parts []string, namespaces string, reason requests.Reason, err error)
	Synced(generation int)
	Gone(reason requests.Reason)
}

// generation is one period in which a version of the type is followed.
type generation struct {
	number  int
	version string
	known   *knowledge
}

// Run runs a generation whenever the type is there to be followed, until ctx ends. It is level-based: it
// compares what is with what runs, and never acts on a single event. It needs no goroutine but the caller's
// while all goes well.
func (f *Follower) Run(ctx context.Context) {
	if f.Board == nil {
		f.generation(ctx, &knowledge{}, f.Type.Version)
		return
	}
	for ctx.Err() == nil {
		known, news := f.observe()
		version, reason, cause := known.runnable(f.Type, f.Versions, f.Namespaces)
		if reason != requests.ReasonNone {
			f.Health.Pending(reason, cause)
			await(ctx, news)
			continue
		}
		if reason := f.versions(ctx, known, version); ctx.Err() == nil {
			f.leave(reason)
		}
	}
}

// observe returns what is known of the type and a channel that is closed when that changes.
func (f *Follower) observe() (*knowledge, <-chan struct{}) {
	known, news := f.Board.know(f.Type.GroupResource())
	f.Health.Seen(known.exists, known.Terminating)
	return known, news
}

// versions runs generations of one type, one for each version that takes over from another, until the type is
// gone, and says why it is, or until ctx ends.
//
// The reflector of the earlier version ends before that of the next begins, because two cannot write to one
// cache. Nothing is missed by that: what is not served any more has nothing left to tell. The cache keeps
// what the earlier one showed until the next has listed. Then the objects are swapped as in a relist: those
// that are still there are delivered as updates.
func (f *Follower) versions(ctx context.Context, known *knowledge, version string) requests.Reason {
	for {
		running, cancel := context.WithCancel(ctx)
		e := &ending{Follower: f, was: identityOf(&known.Type), version: version, cancel: cancel}
		stop := f.Board.notify(f.Type.GroupResource(), e.news)
		e.look() // at what has changed before
		f.generation(running, known, version)
		stop()
		next := e.next()
		cancel()
		if ctx.Err() != nil || next.version == "" {
			return next.gone
		}
		known, version = next.known, next.version
	}
}

// generation lists and watches a version until ctx ends. Nothing of the generation runs any more when it
// returns.
func (f *Follower) generation(ctx context.Context, known *knowledge, version string) {
	f.serve(ctx, &generation{number: f.Health.Begin(version, known.UID), version: version, known: known})
	<-ctx.Done()
}

// leave ends what handlers and readers see of a type that is gone: every object is queued as deleted, and
// the cache is empty.
func (f *Follower) leave(reason requests.Reason) {
	// It fails only after the stop, when nobody is to be told of deletions.
	_ = f.Cache.Forget()
	f.Health.Gone(reason)
}

func await(ctx context.Context, news <-chan struct{}) {
	select {
	case <-news:
	case <-ctx.Done():
	}
}
