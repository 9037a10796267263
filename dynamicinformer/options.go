package dynamicinformer

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

// Options configure a Factory. One of Client and Config is required; the zero value of everything else
// is usable. New refuses what contradicts itself, all of it in one error.
type Options struct {
	// Client lists and watches. It takes precedence over Config only in that giving both is an error.
	Client dynamic.Interface

	// Config is what a client is made from, with NewClient, where Client is nil. It is copied. Its
	// client-side rate limit applies as it is; with many types, raise QPS and Burst, or set QPS to -1 and
	// leave fairness to the server.
	Config *rest.Config

	// HTTPClient is used with Config, so that connections can be shared with other clients. Default: one
	// made from Config.
	HTTPClient *http.Client

	// Types tells which types the server has, live; a discovery.Tracker does through its Types method.
	// With it, an informer waits for its type, stops when the type goes (each object is delivered as
	// deleted and the cache is emptied), and starts again when it comes back. The caller runs it, for
	// longer than the factory. Default: every type is taken to exist, as client-go does.
	Types typesource.Source

	// Defaults say how every type is followed that neither Resources nor Acquire says more about.
	Defaults ResourceOptions

	// Resources say how single types are followed. What is set there takes precedence over Defaults, field
	// by field; Indexers add up.
	Resources map[schema.GroupVersionResource]ResourceOptions

	// ListConcurrency is how many lists may be under way at once, over all types, counting a watch-list
	// until its initial events are over. It shrinks while the server answers 429 and recovers afterwards.
	// Default: 10.
	ListConcurrency int

	// MemoryBudget is the number of heap bytes that the caches of all running informers together should not
	// exceed, counted as in Stats.Bytes. The factory compresses objects of types with StorageAdaptive to stay
	// within it: lists on arrival, as with Storage.CompressLists; then unread objects; then all others. It
	// compares the caches with the budget each second. Other modes of storage count, and stay as they are.
	// Nothing is ever dropped: Factory.MemoryStats reports the bytes over budget. Copies that were decoded
	// for readers do not count, and neither does the first MB of each list. Default: zero, no budget.
	MemoryBudget int64

	// Linger is how long an informer stays after the last Handle to it is released, so that one that is
	// acquired again soon need not list again. Default: 5 seconds. Negative: it is stopped at once.
	Linger time.Duration

	// Persistence keeps what the informers hold for the next process, which goes on from there without
	// listing everything again. Informers whose content depends on funcs (TweakListOptions, and Transform but
	// for StripManagedFields) or that follow a shard are not kept, nor are Secrets unless
	// ResourceOptions.Persist says so; Informer.Persistence tells. Package storage/disk has one. Default:
	// nothing is kept.
	Persistence persistence.Backend

	// PersistenceInterval is how far behind what is kept may be; at the end of an informer, and so at
	// Shutdown, it is complete. Default: 5 seconds.
	PersistenceInterval time.Duration

	// OnWatchError is called for every failure of a list or watch that Listener.RequestFailed and Status tell
	// of, and for what goes wrong with an answer, from the goroutine that follows the type, which it must not
	// hold up. It gets more than the watch error handler of an informer, which never hears of refused
	// connections, of throttling and of watches that break off. No failures are answers that are part of the
	// protocol (410, a resource version from the future), a watch-list that is refused while the list that
	// follows at once succeeds, and a 403 for all namespaces where single ones are followed instead. Default:
	// what goes wrong is in the status and in the log.
	OnWatchError func(gvr schema.GroupVersionResource, err error)

	// Listener is told what happens to the informers, for metrics, logs and alarms; see also
	// Factory.AddListener. Default: nobody is.
	Listener Listener

	// Logger is what informers log to. Default: that of the context given to Start, which is klog's own
	// where the context carries none.
	Logger *klog.Logger
}

const (
	defaultListConcurrency = 10
	defaultLinger          = 5 * time.Second
	defaultPersistence     = 5 * time.Second
)

// validate returns everything that is wrong with the options, but not what only a client can find out.
func (o Options) validate() error {
	var errs []error
	if o.ListConcurrency < 0 {
		errs = append(errs, fmt.Errorf("the list concurrency is %d; it must not be negative",
			o.ListConcurrency))
	}
	if o.PersistenceInterval < 0 {
		errs = append(errs, fmt.Errorf("the persistence interval is %v; it must not be negative",
			o.PersistenceInterval))
	}
	if o.MemoryBudget < 0 {
		errs = append(errs, fmt.Errorf("the memory budget is %d; it must not be negative", o.MemoryBudget))
	}
	for _, err := range o.Defaults.validate() {
		errs = append(errs, fmt.Errorf("by default: %w", err))
	}
	for _, gvr := range sortedGVRs(o.Resources) {
		for _, err := range o.Resources[gvr].validate() {
			errs = append(errs, fmt.Errorf("%s: %w", formatGVR(gvr), err))
		}
		if err := o.checkType(gvr, o.Resources[gvr].over(o.Defaults)); err != nil {
			errs = append(errs, fmt.Errorf("resources: %w", err))
		}
	}
	if o.Types == nil && !o.Defaults.Versions.versions.IsPinned() {
		errs = append(errs, errPolicyNeedsTypes)
	}
	return errors.Join(errs...)
}

var errPolicyNeedsTypes = errors.New("a version policy other than the pinned one needs Types")

// checkType returns what is wrong with asking for a type with these options.
func (o Options) checkType(gvr schema.GroupVersionResource, options ResourceOptions) error {
	pinned := options.Versions.versions.IsPinned()
	switch {
	case gvr.Resource == "", pinned && gvr.Version == "":
		return fmt.Errorf("%q lacks a version or a resource", gvr.String())
	case !pinned && o.Types == nil:
		return fmt.Errorf("%s: %w", formatGVR(gvr), errPolicyNeedsTypes)
	}
	return nil
}

// withDefaults returns the options with every default of the factory filled in.
func (o Options) withDefaults() Options {
	if o.ListConcurrency == 0 {
		o.ListConcurrency = defaultListConcurrency
	}
	if o.Linger == 0 {
		o.Linger = defaultLinger
	}
	if o.PersistenceInterval == 0 {
		o.PersistenceInterval = defaultPersistence
	}
	return o
}

// resource returns how a type is followed: as the last of overrides says, then the ones before, then
// Resources, then Defaults. The index by namespace is always there.
func (o Options) resource(gvr schema.GroupVersionResource, overrides ...ResourceOptions) ResourceOptions {
	options := o.Resources[gvr].over(o.Defaults)
	for _, override := range overrides {
		options = override.over(options)
	}
	if options.Storage.Mode == StorageAdaptive && o.MemoryBudget > 0 {
		// uncompressed lists would exceed the budget while a cache is filled
		options.Storage.CompressLists = true
	}
	return ResourceOptions{Indexers: byNamespace}.over(options)
}

// byNamespace is the index that all types have. It never changes, so that they can share it.
var byNamespace = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}

// requiredTypes returns the types that Resources says the program cannot do without, in order.
func (o Options) requiredTypes() []schema.GroupVersionResource {
	return slices.DeleteFunc(sortedGVRs(o.Resources), func(gvr schema.GroupVersionResource) bool {
		return !o.Resources[gvr].required()
	})
}

// client returns the dynamic client that the options ask for.
func (o Options) client() (dynamic.Interface, error) {
	switch {
	case o.Client != nil && (o.Config != nil || o.HTTPClient != nil):
		return nil, errors.New("give Client, or Config and HTTPClient, not both")
	case o.Client != nil:
		return o.Client, nil
	case o.Config == nil:
		return nil, errors.New("one of Client and Config is required")
	}
	return NewClient(o.Config, o.HTTPClient)
}
