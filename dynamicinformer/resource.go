package dynamicinformer

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/follow"
)

// ResourceOptions say how a type is followed. The zero value of a field means that it is not set: what is
// less specific counts then (see Options.Resources), and in the end the default that the field names.
//
// Two requests for one type share an informer when they agree in everything but Resync, PageSize,
// MinWatchTimeout, WatchBookmarks, WatchErrorHandler, Indexers, Persist and Required. Funcs agree when they
// are the same value, not when they do the same.
type ResourceOptions struct {
	// Namespaces limit what is followed. Default: all. Several namespaces are listed and watched one by one,
	// so that it takes no rights beyond them. A cluster-scoped type cannot be followed in namespaces.
	Namespaces Namespaces

	// LabelSelector and FieldSelector limit what is followed; the server applies them. With one that matches
	// nothing, as labels.Nothing, which metav1.LabelSelectorAsSelector makes of nil, does, the informer is
	// synced and empty, and sends no requests. Default: none.
	LabelSelector labels.Selector
	FieldSelector fields.Selector

	// Shard limits what is followed to a part of the hash space, which may change at any time, as it is
	// shared by replicas of a program. Its identity tells views apart. Default: none, which Unsharded says as
	// well.
	Shard *Shard

	// TweakListOptions adjusts the options of every list and watch request of a type, after the selectors
	// have been set. It must give the same answer every time for the same type, and must leave
	// resourceVersion, limit, continue, shardSelector, and the watch options alone.
	TweakListOptions func(gvr schema.GroupVersionResource, options *metav1.ListOptions)

	// Resync is how often each handler gets the whole cache again as updates, with up to a tenth more so that
	// types take turns. The first request for an informer decides. Default: never, which a pointer to zero
	// says as well.
	Resync *time.Duration

	// PageSize is how many objects a list asks for at once, where the type is not listed by a watch. The
	// first request for an informer decides. Small pages bound what server and network have to hold of one
	// answer; but API servers read each page from etcd, which costs them more than a list from their own
	// memory. Default: zero, client-go's choice, which is everything at once as long as the server's memory
	// has it, and otherwise 500.
	PageSize int64

	// MinWatchTimeout is how long a watch is asked to last at least; the server ends each after a random time
	// between that and twice as long, and another one follows. The first request for an informer decides.
	// Longer ones renew fewer connections. Default, and the least: 5 minutes.
	MinWatchTimeout time.Duration

	// WatchBookmarks says whether watches ask for bookmarks, by which they can go on after a pause without a
	// new list. The first request for an informer decides. Without them, types are listed rather than watched
	// from the beginning on. Default: true.
	WatchBookmarks *bool

	// WatchErrorHandler is called when a list or watch ends with an error, as that of a client-go informer
	// is, instead of logging that. It never hears of refused connections, of throttling and of watches that
	// break off: see Options.OnWatchError, which is called besides. The first request for an informer
	// decides.
	WatchErrorHandler cache.WatchErrorHandlerWithContext

	// Storage says how objects are kept in memory. Default: StoragePacked, as JSON that is decoded when it is
	// read.
	Storage Storage

	// Prune says what to leave out of objects. A Transform does not see that. Default: nothing.
	Prune Prune

	// Transform changes each object before it is stored. It must be idempotent and should not fail: see
	// cache.TransformFunc. It gets an *unstructured.Unstructured that is its own, in every mode of storage;
	// with those that pack, that costs decoding and encoding each object, so what Prune can do is better left
	// to that. It may be called while the initial events of a watch-list come in, and must not wait for
	// another type. StripManagedFields is ready-made, and is done as Prune does it.
	Transform cache.TransformFunc

	// Indexers are index functions beside the one by namespace, which is always there. Those of Defaults,
	// Resources and Acquire add up; under one name, the most specific counts. An informer that exists
	// already gets those whose names are new to it.
	Indexers cache.Indexers

	// Required says that the program cannot do without the type: Factory.WaitForSync waits for its CRD to be
	// installed and for the right to read it, and ConditionReady for its first list. It counts while somebody
	// who says so claims the informer, and what Options.Resources requires from New on. Default: false.
	Required *bool

	// Indexes are indexes that are read from the JSON of objects, without decoding them: those that package
	// indexers compiles. No name may be among those of Indexers. Default: none.
	Indexes IndexSet

	// Persist says whether Options.Persistence keeps the type. The first request for an informer decides.
	// Default: true, but for Secrets.
	Persist *bool

	// Versions say what becomes of the informer when the server stops serving the version it uses. Default:
	// PinnedVersion.
	Versions VersionPolicy
}

// leastWatchTimeout is the least MinWatchTimeout that client-go's reflectors accept.
const leastWatchTimeout = 5 * time.Minute

// over returns the options with every field that is not set taken from defaults.
func (o ResourceOptions) over(defaults ResourceOptions) ResourceOptions {
	if !o.Namespaces.set.IsSet() {
		o.Namespaces = defaults.Namespaces
	}
	if o.LabelSelector == nil {
		o.LabelSelector = defaults.LabelSelector
	}
	if o.FieldSelector == nil {
		o.FieldSelector = defaults.FieldSelector
	}
	if o.Shard == nil {
		o.Shard = defaults.Shard
	}
	if o.TweakListOptions == nil {
		o.TweakListOptions = defaults.TweakListOptions
	}
	if o.Resync == nil {
		o.Resync = defaults.Resync
	}
	if o.PageSize == 0 {
		o.PageSize = defaults.PageSize
	}
	if o.MinWatchTimeout == 0 {
		o.MinWatchTimeout = defaults.MinWatchTimeout
	}
	if o.WatchBookmarks == nil {
		o.WatchBookmarks = defaults.WatchBookmarks
	}
	if o.WatchErrorHandler == nil {
		o.WatchErrorHandler = defaults.WatchErrorHandler
	}
	if !o.Storage.isSet() {
		o.Storage = defaults.Storage
	}
	if !o.Prune.isSet() {
		o.Prune = defaults.Prune
	}
	if o.Transform == nil {
		o.Transform = defaults.Transform
	}
	if o.Indexers == nil {
		o.Indexers = defaults.Indexers
	} else if len(defaults.Indexers) > 0 {
		all := maps.Clone(defaults.Indexers)
		maps.Copy(all, o.Indexers)
		o.Indexers = all
	}
	if o.Persist == nil {
		o.Persist = defaults.Persist
	}
	if o.Required == nil {
		o.Required = defaults.Required
	}
	if o.Indexes == nil {
		o.Indexes = defaults.Indexes
	}
	if !o.Versions.versions.IsSet() {
		o.Versions = defaults.Versions
	}
	return o
}

// validate returns everything that is wrong with the options by themselves.
func (o ResourceOptions) validate() []error {
	var errs []error
	if err := o.Namespaces.set.Validate(); err != nil {
		errs = append(errs, err)
	}
	if err := o.Versions.versions.Validate(); err != nil {
		errs = append(errs, err)
	}
	if err := o.Shard.validate(); err != nil {
		errs = append(errs, err)
	}
	if err := o.Storage.validate(); err != nil {
		errs = append(errs, err)
	}
	if c := o.Storage.Compression; c != nil && !reflect.ValueOf(c).Comparable() {
		errs = append(errs, fmt.Errorf(
			"the compression, a %T, cannot be compared with another; a pointer can", c))
	}
	if err := o.Prune.Validate(); err != nil {
		errs = append(errs, err)
	}
	if o.Resync != nil && *o.Resync < 0 {
		errs = append(errs, fmt.Errorf("the resync period is %v; it must not be negative", *o.Resync))
	}
	if o.PageSize < 0 {
		errs = append(errs, fmt.Errorf("the page size is %d; it must not be negative", o.PageSize))
	}
	if o.MinWatchTimeout != 0 && o.MinWatchTimeout < leastWatchTimeout {
		errs = append(errs, fmt.Errorf("the minimum watch timeout is %v; it must be %v or longer",
			o.MinWatchTimeout, leastWatchTimeout))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Indexers)) {
		switch {
		case name == cache.NamespaceIndex:
			errs = append(errs, fmt.Errorf("the index %q is always there and cannot be replaced", name))
		case o.Indexers[name] == nil:
			errs = append(errs, fmt.Errorf("the index function %q is nil", name))
		}
	}
	if err := o.checkIndexes(); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// resync returns the resync period of one informer.
func (o ResourceOptions) resync() time.Duration {
	if o.Resync == nil || *o.Resync == 0 {
		return 0
	}
	return *o.Resync + rand.N(*o.Resync/10+1)
}

// matchesNothing reports whether a selector is set that no object can match. Such a selector has no text of
// its own: sent to a server, it would select everything.
func (o ResourceOptions) matchesNothing() bool {
	return o.LabelSelector != nil && !o.LabelSelector.Empty() && o.LabelSelector.String() == "" ||
		o.FieldSelector != nil && !o.FieldSelector.Empty() && o.FieldSelector.String() == ""
}

// required returns whether the program cannot do without the type.
func (o ResourceOptions) required() bool { return o.Required != nil && *o.Required }

// noBookmarks returns whether watches ask for no bookmarks.
func (o ResourceOptions) noBookmarks() bool { return o.WatchBookmarks != nil && !*o.WatchBookmarks }

// tweak returns what completes the options of each request.
func (o ResourceOptions) tweak(gvr schema.GroupVersionResource) func(*metav1.ListOptions) {
	// Not all of o, which is large and would be kept for each type.
	labels, fields, tweak := o.LabelSelector, o.FieldSelector, o.TweakListOptions
	if labels == nil && fields == nil && tweak == nil {
		return func(*metav1.ListOptions) {}
	}
	return func(request *metav1.ListOptions) {
		if labels != nil {
			request.LabelSelector = labels.String()
		}
		if fields != nil {
			request.FieldSelector = fields.String()
		}
		if tweak != nil {
			tweak(gvr, request)
		}
	}
}

// VersionPolicy says which version of a type is followed, and what happens when the server stops serving it.
// The zero value means that it is not set, which in the end comes to PinnedVersion.
type VersionPolicy struct{ versions follow.Versions }

// PinnedVersion follows the version that was asked for and no other. When it is no longer served, every
// object is delivered as deleted, and the informer waits for the version to come back.
func PinnedVersion() VersionPolicy { return VersionPolicy{follow.Pinned()} }

// PreferredVersion follows the version that the server prefers of those that can be listed and watched. What
// has been chosen stays until it is no longer served; then the version that is preferred by that time takes
// over, and the objects that exist in both are delivered as updates. It needs Options.Types. The version of
// the GVR that was asked for may be empty and is only part of its name.
func PreferredVersion() VersionPolicy { return VersionPolicy{follow.Preferred()} }

// VersionOrder is PreferredVersion with an order of one's own: the first of these versions that can be
// listed and watched is chosen, and none besides them.
func VersionOrder(versions ...string) VersionPolicy {
	return VersionPolicy{follow.Ordered(versions...)}
}

// String describes the policy: "pinned", "preferred", or the versions in order.
func (p VersionPolicy) String() string { return p.versions.String() }
