package informer

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/crdcache/crdcache/internal/store"
)

// Options configure an Informer. The zero value works: objects of any type, no resyncs, an index by
// namespace.
type Options struct {
	// ExampleObject is an object of the type to expect; objects of another type are dropped and reported. For
	// an *unstructured.Unstructured with apiVersion and kind those are compared too. Default: any type.
	ExampleObject runtime.Object
	// ObjectDescription names the objects in logs and errors. Default: derived from ExampleObject.
	ObjectDescription string
	// ResyncPeriod is the resync period of handlers that name none, and how often the informer looks whether
	// a handler is due; a handler that asks for less before the start lowers the latter. Zero: no resyncs at
	// all.
	ResyncPeriod time.Duration
	// Indexers are the index functions to start with. Nil means cache.NamespaceIndex; an empty map means
	// none. A function that returns an error is reported and the object is left out of that index.
	Indexers cache.Indexers
	// Extractors have more indexes to start with. No two indexes may have the same name.
	Extractors []store.Extractor
	// KeyFunc computes storage keys. Default: cache.DeletionHandlingMetaNamespaceKeyFunc. With another one
	// the keys must still tell apart whatever namespace and name tell apart, because a watch-list is
	// collected by the latter before it gets here.
	KeyFunc cache.KeyFunc
	// Identifier names the informer and its resource in logs.
	Identifier cache.InformerNameAndResource
	// Clock is the time for resyncs, backoff and timeouts. Default: the real one.
	Clock clock.WithTicker
	// Logger is used where neither a context nor cache.HandlerOptions brings one. Default: klog.Background().
	Logger *klog.Logger
	// MinWatchTimeout is the least time that a watch is asked to last. Values under 5 minutes count as that,
	// which is also the default; the most is twice as much.
	MinWatchTimeout time.Duration
	// WatchListPageSize is the page size of LIST requests. Default: client-go's choice (which see).
	WatchListPageSize int64
	// Backoff is the wait between attempts to list and watch. Default: client-go's, 0.8 s to 30 s doubling
	// with full jitter, back at the start after two good minutes.
	Backoff *wait.Backoff
	// Form is how objects are kept. Default: as they are.
	Form store.Form
	// SelectsObjects says that parts have selections, by UID or namespace: a transform that changes these
	// fails.
	SelectsObjects bool
}

// client-go's backoff for list and watch.
const (
	backoffReset = 2 * time.Minute
	backoffFirst = 800 * time.Millisecond
	backoffCap   = 30 * time.Second
)

func standardBackoff() *wait.Backoff {
	return &wait.Backoff{
		Duration: backoffFirst,
		Cap:      backoffCap,
		Steps:    int(backoffCap/backoffFirst) + 1,
		Factor:   2,
		Jitter:   1,
	}
}

// withDefaults returns the options with every default filled in.
func (o Options) withDefaults() Options {
	if o.Indexers == nil {
		o.Indexers = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	}
	if o.KeyFunc == nil {
		o.KeyFunc = keyFunc
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Logger == nil {
		logger := klog.Background()
		o.Logger = &logger
	}
	if o.Backoff == nil {
		o.Backoff = standardBackoff()
	}
	if o.ObjectDescription == "" {
		o.ObjectDescription = o.describe()
	}
	if o.Form == nil {
		o.Form = store.Objects(nil)
	}
	return o
}

func (o Options) describe() string {
	if gvr := o.Identifier.GroupVersionResource(); !gvr.Empty() {
		return gvr.String()
	}
	if o.ExampleObject == nil {
		return "objects"
	}
	if gvk := o.ExampleObject.GetObjectKind().GroupVersionKind(); !gvk.Empty() {
		return gvk.String()
	}
	return fmt.Sprintf("%T", o.ExampleObject)
}
