package newer

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// reflectorOptions are ReflectorOptions with Backoff and Logger.
type reflectorOptions struct {
	*cache.ReflectorOptions
	withoutBackoff
}

type withoutBackoff struct{ noBackoff }

type noBackoff struct {
	Backoff *wait.Backoff
	Logger  *klog.Logger
}

// HasBackoff is true since client-go 0.36.
var _, HasBackoff = reflect.TypeFor[cache.ReflectorOptions]().FieldByName("Backoff")

// backoffReset is the time without a failure after which a backoff starts again, as in client-go.
const backoffReset = 2 * time.Minute

// SetBackoff sets o.Backoff and o.Clock. Reflectors of client-go 0.35 have a fixed backoff. For them it
// sets a clock whose timers last as long as the given backoff.
func SetBackoff(o *cache.ReflectorOptions, backoff *wait.Backoff, c clock.WithTicker) {
	wrapped := &reflectorOptions{ReflectorOptions: o}
	wrapped.Backoff, o.Clock = backoff, c
	if !HasBackoff && backoff != nil {
		o.Clock = pacedClock{c, o.ResyncPeriod, backoff.DelayWithReset(c, backoffReset)}
	}
}

// SetLogger sets o.Logger, which does not exist in client-go 0.35.
func SetLogger(o *cache.ReflectorOptions, logger *klog.Logger) {
	wrapped := &reflectorOptions{ReflectorOptions: o}
	wrapped.Logger = logger
}

// pacedClock is a clock with timers that last for the delay, except timers for the resync period. A
// reflector of client-go 0.35 uses timers for its resync period and for its backoff.
type pacedClock struct {
	clock.WithTicker
	resync time.Duration
	delay  wait.DelayFunc
}

func (c pacedClock) NewTimer(d time.Duration) clock.Timer {
	if d == c.resync {
		return c.WithTicker.NewTimer(d)
	}
	t := &pacedTimer{clock: c}
	t.Reset(d)
	return t
}

// pacedTimer uses After, which can end early (see the clock of package informer).
type pacedTimer struct {
	clock pacedClock
	c     <-chan time.Time
}

func (t *pacedTimer) C() <-chan time.Time { return t.c }
func (t *pacedTimer) Stop() bool          { return true }

func (t *pacedTimer) Reset(time.Duration) bool {
	t.c = t.clock.After(t.clock.delay())
	return true
}

// BookmarkStore is cache.ReflectorBookmarkStore, which client-go has since 0.36.
type BookmarkStore interface {
	Bookmark(resourceVersion string) error
}

// ReflectorStore returns the store for a reflector, which calls Bookmark of a BookmarkStore for bookmarks.
func ReflectorStore(store cache.ReflectorStore) cache.ReflectorStore {
	if bookmarks, ok := store.(BookmarkStore); ok && !HasBackoff {
		return versionStore{store, bookmarks}
	}
	return store
}

// versionStore is a store for reflectors of client-go 0.35, which pass it the version of every event.
type versionStore struct {
	cache.ReflectorStore
	bookmarks BookmarkStore
}

func (s versionStore) UpdateResourceVersion(version string) {
	_ = s.bookmarks.Bookmark(version) // fails after the end of a generation
}

func (s versionStore) Transformer() cache.TransformFunc {
	if t, ok := s.ReflectorStore.(cache.TransformingStore); ok {
		return t.Transformer()
	}
	return nil
}

// storesHaveVersions is true since client-go 0.36.
var _, storesHaveVersions = reflect.TypeFor[cache.Store]().MethodByName("LastStoreSyncResourceVersion")

// StoreVersion returns the resource version of a store. It returns false with client-go 0.35, because its
// stores have none.
func StoreVersion(store cache.Store) (version string, ok bool) {
	s, ok := store.(interface{ LastStoreSyncResourceVersion() string })
	if !ok || !storesHaveVersions {
		return "", false
	}
	return s.LastStoreSyncResourceVersion(), true
}
