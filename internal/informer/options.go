package informer

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/crdcache/crdcache/internal/store"
)

// Options configure an Informer. The zero value has objects of any type and an index by namespace.
type Options struct {
	// ObjectDescription names the objects in logs and errors. Default: "objects".
	ObjectDescription string
	// ResyncPeriod is the default resync period of handlers, and the check period: how often the informer
	// looks for handlers that are due. A handler with a shorter period, added before the start, shortens the
	// check period. Zero means no resyncs.
	ResyncPeriod time.Duration
	// Indexers are the initial index functions. Nil means cache.NamespaceIndex, an empty map none. If a
	// function returns an error, that is reported and the object is not in the index.
	Indexers cache.Indexers
	// Extractors have further initial indexes. Names must be unique.
	Extractors []store.Extractor
	// Clock is used for resyncs, backoff and timeouts. Default: the real one.
	Clock clock.WithTicker
	// Logger is used if neither a context nor cache.HandlerOptions has one. Default: klog.Background().
	Logger *klog.Logger
	// MinWatchTimeout is the minimum timeout of a watch, half the maximum. Default and minimum: 5 minutes.
	MinWatchTimeout time.Duration
	// VerifyPeriod is the period of comparisons with the server. OnVerified receives the result of each and
	// the logger of the run, before a relist repairs the cache, and is required. Default: never.
	VerifyPeriod time.Duration
	OnVerified   func(logger klog.Logger, result Verification, err error)
	// WatchListPageSize is the page size of LIST requests. Default: as client-go's reflector.
	WatchListPageSize int64
	// Backoff is the pause between attempts to list and watch. Default: client-go's, which doubles from 0.8 s
	// to 30 s with full jitter, and is reset after two minutes without an attempt.
	Backoff *wait.Backoff
	// Format is the storage format of objects. Default: decoded.
	Format store.Format
	// Selects reports whether an arriving object is selected. If it returns false for the object of a
	// deletion, the object has left the selection: handlers then receive its stored state, as from a server
	// that selects. Default: all objects are selected.
	Selects func(runtime.Object) bool
	// KeepRepeated keeps all objects of a list in which several have one key. All but the first get numbered
	// keys; see naming.NumberedKey.
	KeepRepeated bool
	// SelectsObjects is true if partitions select objects by UID or namespace. Transforms must keep both.
	SelectsObjects bool
}

// The backoff of client-go's reflector.
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

func (o Options) withDefaults() Options {
	if o.Indexers == nil {
		o.Indexers = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	}
	o.Clock = cmp.Or[clock.WithTicker](o.Clock, clock.RealClock{})
	o.Logger = cmp.Or(o.Logger, new(klog.Background()))
	if o.Selects == nil {
		o.Selects = func(runtime.Object) bool { return true }
	}
	if o.Backoff == nil {
		o.Backoff = standardBackoff()
	}
	o.ObjectDescription = cmp.Or(o.ObjectDescription, "objects")
	o.Format = cmp.Or(o.Format, store.Objects(nil))
	return o
}
