package dynamicinformer

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/follow"
)

// ResourceOptions configure the informer of a type. A field with its zero value is unset: less specific
// options apply (see Options.Resources), and finally the default that the field names.
//
// Requests for one type share an informer if they agree in everything except Resync, Verify, PageSize,
// MinWatchTimeout, WatchBookmarks, Indexers, Persist and Required. Equal functions agree.
type ResourceOptions struct {
	// Namespaces limit the informer to some namespaces. Several namespaces each have their own list and
	// watch, which requires no further permissions. A cluster-scoped type cannot be limited. Default: all.
	Namespaces Namespaces

	// LabelSelector and FieldSelector limit the objects; the server applies them. With a selector that
	// matches nothing the informer is synced and empty and sends no requests. metav1.LabelSelectorAsSelector
	// returns such a selector for nil. Default: none.
	LabelSelector labels.Selector
	FieldSelector fields.Selector

	// AnyOf limits the objects further, to objects that at least one alternative selects. An object is
	// cached once; if it leaves one alternative and matches another, handlers receive an update (TestAnyOf).
	//
	// One list and watch serves all alternatives. The server applies the requirements that they have in
	// common; values of one label are merged: "team=a" and "team=b" become "team in (a,b)". The informer
	// drops other objects on arrival, so it receives more than it caches if the alternatives have different
	// labels. Field selectors of single alternatives are limited to metadata.name and metadata.namespace.
	// Prune must not drop labels that the alternatives use. Default: none.
	AnyOf []Selector

	// Selectors limits the objects as AnyOf does, with selectors that may change while the informer runs.
	// Informers with different *Selectors values are not shared. Default: none.
	Selectors *Selectors

	// Shard limits the informer to a part of the hash space, which may change at any time, so that replicas
	// of a program share the objects. Informers with different *Shard values are not shared. Default: none,
	// as with Unsharded.
	Shard *Shard

	// TweakListOptions adjusts the options of every list and watch request, after the selectors have been
	// set. It must always set the same values for the same type. It must not change resourceVersion, limit,
	// continue, shardSelector and the watch options.
	TweakListOptions func(gvr schema.GroupVersionResource, options *metav1.ListOptions)

	// Resync is the period after which each handler receives all objects as updates. A random jitter of up to
	// 10 % is added, so that informers do not resync at the same time. The first request for an informer
	// decides. Default: never, as with a pointer to zero.
	Resync *time.Duration

	// Verify is the period after which the cached keys, UIDs and resource versions are compared with a paged
	// list of metadata at the same resource version. A random jitter of 10 % spreads the comparisons. If they
	// differ twice in a row, the informer relists: for example, a proxy has lost an event. Status.Relists,
	// Listener.Relisted, Counters.Verifications and the log report it. The first request for an informer
	// decides. Default: never.
	Verify time.Duration

	// PageSize is the number of objects in a page of a list, if the type is not listed by a watch. The first
	// request for an informer decides. Small pages bound the memory for one answer, but API servers read
	// pages from etcd, which is more expensive than a list from their memory. Default: zero, client-go's
	// choice: everything at once if the server has it in memory, otherwise 500.
	PageSize int64

	// MinWatchTimeout is the minimum duration of a watch. The server ends each watch after a random time
	// between this and twice as long, and the informer sends the next one. The first request for an informer
	// decides. Longer watches cause fewer new connections. Default and minimum: 5 minutes.
	MinWatchTimeout time.Duration

	// WatchBookmarks requests bookmarks, with which a watch can continue after a pause. The first request for
	// an informer decides. Without them the informer does not use watch-lists. Default: true.
	WatchBookmarks *bool

	// Storage selects the format of objects in memory. Default: StoragePacked, JSON that reads decode.
	Storage Storage

	// Prune drops fields from objects, before Transform. Default: none.
	Prune Prune

	// Keep stores only some fields. Of a Prune, it can be combined with Presets, for whole objects. Keep and
	// Prune override both in less specific options, but Presets alone leave Keep. Default: all fields.
	Keep Keep

	// Transform changes each object before it is stored. It must be idempotent and should not fail: see
	// cache.TransformFunc. In every storage mode it receives an *unstructured.Unstructured that it owns.
	// Packed storage modes decode and encode each object for it, so prefer Prune for dropping fields. It may
	// run while the initial events of a watch-list arrive, and must not wait for another type.
	Transform cache.TransformFunc

	// Indexers are index functions in addition to the index by namespace. Those of Defaults, Resources
	// and Acquire are merged; for equal names the most specific option wins. An existing informer
	// receives the functions with new names.
	Indexers cache.Indexers

	// Required means that the program depends on the type. Factory.WaitForSync then waits until the CRD is
	// installed and readable, and ConditionReady waits for the first list. It applies while such a claim is
	// held; types that Options.Resources requires count from New on. Default: false.
	Required *bool

	// Indexes are computed from the JSON of objects, without decoding; package indexers compiles them. Their
	// names must differ from those of Indexers. Default: none.
	Indexes IndexSet

	// Persist selects whether Options.Persistence stores the type. The first request for an informer decides.
	// Default: true, except for Secrets.
	Persist *bool

	// Versions selects the API version when the current one is no longer served. Default: PinnedVersion.
	Versions VersionPolicy
}

// lowestWatchTimeout is the minimum that client-go's reflectors accept.
const lowestWatchTimeout = 5 * time.Minute

// withDefaults returns the options with every unset field taken from defaults. Indexers are merged.
func (o ResourceOptions) withDefaults(defaults ResourceOptions) ResourceOptions {
	indexers := o.Indexers
	if indexers != nil && len(defaults.Indexers) > 0 {
		indexers = maps.Clone(defaults.Indexers)
		maps.Copy(indexers, o.Indexers)
	}
	if o.Prune.Paths != nil || o.Prune.Annotations != nil || o.Keep.isSet() { // they exclude each other
		defaults.Prune, defaults.Keep = Prune{}, Keep{}
	}
	if o.AnyOf != nil || o.Selectors != nil { // they exclude each other
		defaults.AnyOf, defaults.Selectors = nil, nil
	}
	values, defaultValues := reflect.ValueOf(&o).Elem(), reflect.ValueOf(&defaults).Elem()
	for k := range values.NumField() {
		if values.Field(k).IsZero() {
			values.Field(k).Set(defaultValues.Field(k))
		}
	}
	if indexers != nil {
		o.Indexers = indexers
	}
	return o
}

// Validate returns an error for options that are invalid for every type.
func (o ResourceOptions) Validate() error { return errors.Join(o.validate()...) }

func (o ResourceOptions) validate() []error {
	_, err := o.pruner()
	errs := slices.DeleteFunc([]error{
		o.Namespaces.set.Validate(), alternatives(o.AnyOf).validate(),
		o.Shard.validate(), o.validateSelectors(), o.Storage.validate(), err, o.checkIndexes(), o.checkNone(),
	}, func(err error) bool { return err == nil })
	if c := o.Storage.Compression; c != nil && !reflect.ValueOf(c).Comparable() {
		errs = append(errs, fmt.Errorf("Storage.Compression of type %T is not comparable: use a pointer", c))
	}
	if (o.Prune.Paths != nil || o.Prune.Annotations != nil) && o.Keep.isSet() {
		errs = append(errs, errors.New("Keep and paths or annotations of Prune are both set: set only Keep, which drops all fields that it does not list"))
	}
	if o.Resync != nil {
		errs = append(errs, checkNotNegative("option Resync", *o.Resync)...)
	}
	errs = slices.Concat(errs, checkNotNegative("option Verify", o.Verify), checkNotNegative("PageSize", o.PageSize))
	if o.MinWatchTimeout != 0 && o.MinWatchTimeout < lowestWatchTimeout {
		errs = append(errs, fmt.Errorf("MinWatchTimeout is %v; it must be at least %v",
			o.MinWatchTimeout, lowestWatchTimeout))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Indexers)) {
		switch {
		case name == cache.NamespaceIndex:
			errs = append(errs, fmt.Errorf("the index %q is built in and cannot be replaced", name))
		case o.Indexers[name] == nil:
			errs = append(errs, fmt.Errorf("the index function %q is nil", name))
		}
	}
	return errs
}

// resync returns the resync period of an informer, with a random addition.
func (o ResourceOptions) resync() time.Duration {
	if o.Resync == nil || *o.Resync == 0 {
		return 0
	}
	return *o.Resync + rand.N(*o.Resync/10+1)
}

// matchesNothing reports whether the selectors match no object.
func (o ResourceOptions) matchesNothing() bool {
	base := Selector{o.LabelSelector, o.FieldSelector}
	return base.matchesNothing() || alternatives(o.AnyOf).matchesNothing()
}

// selectsObjects reports whether the options select objects within the namespaces and the shard.
func (o ResourceOptions) selectsObjects() bool {
	return o.LabelSelector != nil && !o.LabelSelector.Empty() ||
		o.FieldSelector != nil && !o.FieldSelector.Empty() || len(o.AnyOf) > 0 ||
		o.Selectors != nil || o.TweakListOptions != nil
}

func (o ResourceOptions) required() bool { return o.Required != nil && *o.Required }

// requestTweaker returns a function that completes the options of each request.
func (o ResourceOptions) requestTweaker(gvr schema.GroupVersionResource) func(*metav1.ListOptions) {
	// Capture single fields: o is large, and the closure lives as long as the type.
	labelSelector, fieldSelector, tweak := o.serverSelectors()
	if labelSelector == nil && fieldSelector == nil && tweak == nil {
		return func(*metav1.ListOptions) {}
	}
	return func(request *metav1.ListOptions) {
		if labelSelector != nil {
			request.LabelSelector = labelSelector.String()
		}
		if fieldSelector != nil {
			request.FieldSelector = fieldSelector.String()
		}
		if tweak != nil {
			tweak(gvr, request)
		}
	}
}

// serverSelectors returns the selectors that the server applies.
func (o ResourceOptions) serverSelectors() (label labels.Selector, field fields.Selector,
	tweak func(schema.GroupVersionResource, *metav1.ListOptions)) {
	label, field = o.LabelSelector, o.FieldSelector
	if anyOf := alternatives(o.AnyOf); len(anyOf.possible()) > 0 {
		common := anyOf.commonLabels()
		if label != nil {
			requirements, _ := label.Requirements()
			common = common.Add(requirements...)
		}
		label = common
		if common := anyOf.commonFields(); field == nil {
			field = common
		} else if !common.Empty() {
			field = fields.AndSelectors(field, common)
		}
	}
	return label, field, o.TweakListOptions
}

// VersionPolicy selects the API version that an informer watches, also when the server stops serving it. The
// zero value is unset; the default is PinnedVersion.
type VersionPolicy struct{ versions follow.Versions }

// PinnedVersion watches only the requested version. While the server does not serve it, the informer keeps
// its objects as stale, and waits.
func PinnedVersion() VersionPolicy { return VersionPolicy{follow.VersionsPinned} }

// PreferredVersion watches the server's preferred version that supports list and watch. The informer keeps it
// until the server stops serving it. Then it changes to the version that is preferred at that time, and
// delivers objects that exist in both as updates. It requires Options.Types. The version of the requested GVR
// may be empty and only identifies the informer.
func PreferredVersion() VersionPolicy { return VersionPolicy{follow.VersionsPreferred} }

// String returns "pinned" or "preferred".
func (p VersionPolicy) String() string { return p.versions.String() }

// optionsKey identifies the options that distinguish informers of a type.
type optionsKey struct {
	namespaces, labels, fields, anyOf, versions, prune string
	// selectsNothing is set for selectors that match nothing: like a missing selector, their text is empty.
	selectsNothing   bool
	tweak, transform unsafe.Pointer
	storage          Storage
	shard            *Shard // nil: no shard
	selectors        *Selectors
}

func (o ResourceOptions) key() optionsKey {
	key := optionsKey{
		namespaces:     o.Namespaces.set.Key(),
		selectsNothing: o.matchesNothing(),
		anyOf:          strings.Join(slices.Sorted(maps.Keys(selectorSetOf(o.AnyOf))), " | "),
		versions:       o.Versions.String(),
		prune:          o.Prune.key() + o.Keep.key(),
		tweak:          identityOf(o.TweakListOptions),
		transform:      identityOf(o.Transform),
		storage:        o.Storage,
		shard:          o.Shard.orNil(),
		selectors:      o.Selectors,
	}
	if o.LabelSelector != nil {
		key.labels = o.LabelSelector.String()
	}
	if o.FieldSelector != nil {
		key.fields = o.FieldSelector.String()
	}
	if key.storage == (Storage{}) {
		key.storage.Mode = StoragePacked
	}
	return key
}

// identityOf returns the address of a function value. It distinguishes closures with the same code and
// different variables, which the code address of package reflect does not. It is unique while f is reachable.
func identityOf[F func(schema.GroupVersionResource,
	*metav1.ListOptions) | cache.TransformFunc](f F) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&f))
}

// describe returns one line that describes how the options differ from the default.
func (o ResourceOptions) describe() string {
	var parts []string
	addIf := func(differs bool, text string) {
		if differs {
			parts = append(parts, text)
		}
	}
	key := o.key()
	mode := key.storage.Mode
	addIf(!o.Namespaces.set.IsAll(), "namespaces: "+o.Namespaces.String())
	addIf(key.selectsNothing, "no objects")
	addIf(key.labels != "", "labels: "+key.labels)
	addIf(key.fields != "", "fields: "+key.fields)
	addIf(key.anyOf != "", "any of: "+key.anyOf)
	addIf(key.selectors != nil, "selectors that may change")
	if key.shard != nil {
		addIf(key.shard.key != "", "shard by "+string(key.shard.key))
	}
	addIf(!o.Versions.versions.IsPinned(), "versions: "+key.versions)
	addIf(key.tweak != nil, "requests adjusted")
	addIf(key.transform != nil, "transformed")
	addIf(o.Prune.isSet(), "pruned")
	addIf(o.Keep.isSet(), fmt.Sprintf("%d kept fields%s", len(o.Keep.Paths), o.Keep.conditionKey()))
	addIf(mode != StoragePacked && mode != storageUnset, "storage: "+mode.String())
	return strings.Join(parts, "; ")
}

// key identifies the dropped fields of a valid Prune.
func (p Prune) key() string {
	paths, _ := parsePaths(p.Paths)
	return fmt.Sprintf("%q %v %q", slices.Sorted(slices.Values(p.Presets)), textsOf(paths),
		slices.Sorted(slices.Values(p.Annotations)))
}
