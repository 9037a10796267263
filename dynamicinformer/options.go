package dynamicinformer

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/requests"
)

// Options configure a Factory. Client or Config is required; the zero value of every other field is usable.
// New returns one error that lists all invalid fields.
type Options struct {
	// Client sends the list and watch requests. It excludes Config and HTTPClient.
	Client dynamic.Interface

	// Config is the configuration for NewClient if Client is nil. It is copied. Its client-side rate limit
	// applies: with many types, raise QPS and Burst, or set QPS to -1 and rely on the server's fairness.
	Config *rest.Config

	// HTTPClient is used with Config, to share connections with other clients. Default: made from Config.
	HTTPClient *http.Client

	// Types reports the types that the server serves; discovery.Tracker.Types returns one. With it, an
	// informer waits for its type. When the type is deleted, the informer stops, delivers each object as
	// deleted and empties the cache. It starts again when the type returns. The caller runs the source, for
	// longer than the factory. typesource.AssumeServed assumes that every type exists, as client-go does.
	//
	// Default with Config: each running informer of a custom type follows the CRD of its type
	// (TestDefaultFollowsCRDs). If CRDs cannot be read, the type is assumed to exist
	// (TestCRDsAreNotFollowed). Patterns and version policies need a source. Default with Client:
	// typesource.AssumeServed.
	Types typesource.Source

	// Defaults are the options of every type, unless Resources or Acquire set a field.
	Defaults ResourceOptions

	// Resources are the options of single types. Set fields replace Defaults; Indexers are merged.
	Resources map[schema.GroupVersionResource]ResourceOptions

	// KeepRepeated keeps all objects of a list in which several have one namespace and name, as some
	// aggregated API servers have. The names of all but the first in Informer.Snapshot then end with a NUL
	// and a number. It is for programs that list once: a watch event does not say which object it means.
	// Default: one of them is kept, the same in each list, and the status has ReasonRepeatedKeys.
	KeepRepeated bool

	// ListConcurrency is the maximum number of concurrent lists over all types, including watch-lists until
	// the end of their initial events. The factory reduces it while the server answers 429, and recovers
	// later. GroupOptions.ListConcurrency also applies in a Group. Default: 10.
	ListConcurrency int

	// LiveReadLimiter limits Informer.GetLive, for all types together. Default: 20 per second, 40 at once.
	LiveReadLimiter flowcontrol.RateLimiter

	// MemoryBudget is the number of heap bytes that the caches of all running informers together should not
	// exceed, counted as in Stats.Bytes. The factory compresses objects of types with StorageAdaptive to stay
	// within it: first lists on arrival, as with Storage.CompressLists, then unread objects, then all others.
	// It compares the caches with the budget each second. Objects with other storage modes count, but are not
	// compressed. No object is ever dropped: Factory.MemoryStats reports the bytes over budget. Decoded
	// copies for readers and the first MB of each list do not count. In a Group, set
	// GroupOptions.MemoryBudget instead. Default: zero, no budget.
	MemoryBudget int64

	// Linger is the time that an informer runs after the release of its last Handle, so that a new Acquire
	// need not list again. Default: 5 seconds. Negative: the informer stops immediately.
	Linger time.Duration

	// Persistence stores the cached objects for the next process, which then starts without listing
	// everything. Informers that follow a shard are not persisted, nor informers with functions that affect
	// the content (TweakListOptions, and Transform). Secrets are persisted only with ResourceOptions.Persist.
	// Informer.Persistence reports the state. Package adapters/storage/disk implements it. Default: none.
	Persistence persistence.Backend

	// PersistenceInterval is the maximum age of the last save. An informer also saves when it stops, and so
	// at Shutdown. Default: 5 seconds.
	PersistenceInterval time.Duration

	// InformerName names the informers in client-go's informer metrics, which go to the provider set with
	// cache.SetInformerMetricsProvider (TestClientGoMetrics). The factories of a Group need different names.
	// Of several running informers of one type, the first is measured. Default: none, without these metrics.
	InformerName *cache.InformerName

	// Listener observes the informers, for metrics and logs; see also Factory.AddListener. Default: none.
	Listener status.Listener

	// Logger is the logger of the informers. Default: the logger of the context given to Start.
	Logger *klog.Logger
}

const (
	defaultListConcurrency = 10
	defaultLinger          = 5 * time.Second
	defaultPersistence     = 5 * time.Second
	defaultLiveQPS         = 20
	defaultLiveBurst       = 40
)

// validate returns an error that lists all invalid options, except errors that only a client can find.
func (o Options) validate() error {
	errs := slices.Concat(checkNotNegative("ListConcurrency", o.ListConcurrency),
		checkNotNegative("PersistenceInterval", o.PersistenceInterval), checkNotNegative("MemoryBudget", o.MemoryBudget))
	for _, err := range o.Defaults.validate() {
		errs = append(errs, fmt.Errorf("option Defaults: %w", err))
	}
	for _, gvr := range sortedGVRs(o.Resources) {
		for _, err := range o.Resources[gvr].validate() {
			errs = append(errs, fmt.Errorf("%s: %w", formatGVR(gvr), err))
		}
		if err := o.checkType(gvr, o.Resources[gvr].withDefaults(o.Defaults)); err != nil {
			errs = append(errs, fmt.Errorf("option Resources: %w", err))
		}
	}
	if o.Types == nil && !o.Defaults.Versions.versions.IsPinned() {
		errs = append(errs, errPolicyNeedsTypes)
	}
	return errors.Join(errs...)
}

func checkNotNegative[T cmp.Ordered](name string, value T) (errs []error) {
	var zero T
	if value < zero {
		errs = append(errs, fmt.Errorf("%s is %v; it must not be negative", name, value))
	}
	return errs
}

var errPolicyNeedsTypes = errors.New("a version policy other than PinnedVersion requires Options.Types")

// checkType returns an error if the type cannot be requested with these options.
func (o Options) checkType(gvr schema.GroupVersionResource, options ResourceOptions) error {
	pinned := options.Versions.versions.IsPinned()
	switch {
	case gvr.Resource == "", pinned && gvr.Version == "":
		return fmt.Errorf("%q lacks a version or a resource", gvr.String())
	case !pinned && o.Types == nil:
		return fmt.Errorf("%s: %w", formatGVR(gvr), errPolicyNeedsTypes)
	}
	if err := options.checkNone(); err != nil {
		return fmt.Errorf("%s: %w", formatGVR(gvr), err)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.ListConcurrency = cmp.Or(o.ListConcurrency, defaultListConcurrency)
	o.Linger = cmp.Or(o.Linger, defaultLinger)
	o.PersistenceInterval = cmp.Or(o.PersistenceInterval, defaultPersistence)
	o.LiveReadLimiter = cmp.Or(o.LiveReadLimiter,
		flowcontrol.NewTokenBucketRateLimiter(defaultLiveQPS, defaultLiveBurst))
	return o
}

// resource merges the options of a type: the last of overrides takes precedence, then the earlier ones,
// Resources and Defaults. The index by namespace is always included.
func (o Options) resource(gvr schema.GroupVersionResource, overrides ...ResourceOptions) ResourceOptions {
	options := o.Resources[gvr].withDefaults(o.Defaults)
	for _, override := range overrides {
		options = override.withDefaults(options)
	}
	if options.Storage.Mode == StorageNone {
		return options
	}
	return ResourceOptions{Indexers: byNamespace}.withDefaults(options)
}

// byNamespace is the index of every type. All informers share this value, so it must not change.
var byNamespace = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}

// requiredTypes returns the types that Resources requires, in order.
func (o Options) requiredTypes() []schema.GroupVersionResource {
	return slices.DeleteFunc(sortedGVRs(o.Resources), func(gvr schema.GroupVersionResource) bool {
		return !o.Resources[gvr].required()
	})
}

// client returns Client, or a new client for Config.
func (o Options) client() (dynamic.Interface, error) {
	switch {
	case o.Client != nil && (o.Config != nil || o.HTTPClient != nil):
		return nil, errors.New("set either Client, or Config and HTTPClient")
	case o.Client != nil:
		return o.Client, nil
	case o.Config == nil:
		return nil, errors.New("option Client or Config is required")
	}
	return NewClient(o.Config, o.HTTPClient)
}

// NewClient returns a dynamic client that decodes lists several times faster than the client of
// dynamic.NewForConfigAndClient, with the same results. It is safe for concurrent use. A factory uses its
// config for lists and watches, and decodes objects only when they are read.
//
// The config is copied. The HTTP client takes precedence over the transport settings of config; if it is nil,
// NewClient makes one from config. It sends no request. It fails if config contradicts itself.
func NewClient(config *rest.Config, httpClient *http.Client) (dynamic.Interface, error) {
	c, err := requests.NewClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("dynamicinformer: making a dynamic client: %w", err)
	}
	return c, nil
}
