package informer

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	testclock "k8s.io/utils/clock/testing"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// requests is a ListerWatcher that records its requests. List succeeds or returns err; a watch sends
// no events.
type requests struct {
	err   error
	seen  chan metav1.ListOptions
	items []unstructured.Unstructured
}

func (q *requests) IsWatchListSemanticsUnSupported() bool { return true }

func (q *requests) List(o metav1.ListOptions) (runtime.Object, error) {
	return q.ListWithContext(context.Background(), o)
}

func (q *requests) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return q.WatchWithContext(context.Background(), o)
}

func (q *requests) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	select {
	case q.seen <- o:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &unstructured.UnstructuredList{Items: q.items, Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": "7"},
	}}, q.err
}

func (q *requests) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	select {
	case q.seen <- o:
	case <-ctx.Done():
	}
	return watch.NewFake(), nil
}

// requestsOf runs an informer until it has sent n requests, and returns them.
func requestsOf(t *testing.T, options Options, n int, err error) []metav1.ListOptions {
	t.Helper()
	q := &requests{err: err, seen: make(chan metav1.ListOptions)}
	i := New(q, options)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { // ended by cancel
		defer close(done)
		i.RunWithContext(ctx)
	}()
	var seen []metav1.ListOptions
	for range n {
		seen = append(seen, <-q.seen)
	}
	cancel()
	<-done
	return seen
}

// optionEffects tests the effect of each field of Options.
var optionEffects = map[string]func(t *testing.T){
	"ExampleObject": func(t *testing.T) {
		i := New(nil, Options{ExampleObject: object("a", 1)})
		if got := i.syncName(); got != "informer of /v1, Kind=Thing" {
			t.Errorf("syncName() = %q", got)
		}
		i = New(nil, Options{ExampleObject: &unstructured.Unstructured{}})
		if got := i.syncName(); got != "informer of *unstructured.Unstructured" {
			t.Errorf("syncName() = %q", got)
		}
	},
	"ObjectDescription": func(t *testing.T) {
		i := New(nil, Options{ObjectDescription: "things", ExampleObject: object("a", 1)})
		if got := i.syncName(); got != "informer of things" {
			t.Errorf("syncName() = %q", got)
		}
	},
	"ResyncPeriod": func(t *testing.T) {
		f := newIdleFeed(t, Options{ResyncPeriod: time.Minute})
		if _, handle := f.handle(); handle.period != time.Minute {
			t.Errorf("the handler's resync period = %v, want 1m", handle.period)
		}
	},
	"VerifyPeriod": verifies, "OnVerified": verifies,
	"RelistForHandler": relistsForHandler,
	"Indexers": func(t *testing.T) {
		for _, tc := range []struct {
			given cache.Indexers
			want  []string
		}{{nil, []string{cache.NamespaceIndex}}, {cache.Indexers{},
			nil}, {cache.Indexers{"x": oddVersionsOnly}, []string{"x"}}} {
			var names []string
			for name := range New(nil, Options{Indexers: tc.given}).GetIndexer().GetIndexers() {
				names = append(names, name)
			}
			if !slices.Equal(names, tc.want) {
				t.Errorf("indexes %v, want %v", names, tc.want)
			}
		}
	},
	"Extractors": func(t *testing.T) {
		f := newFeed(t, Options{Format: store.NewPacked(nil, nil),
			Extractors: []store.Extractor{byFirstLetter{}}})
		f.list(1, object("a1", 1), object("a2", 1), object("b", 1))
		keys, err := f.GetIndexer().IndexKeys("letter", "a")
		f.ok(err)
		expect(t, "keys", keys, []string{"ns/a1", "ns/a2"})
		if _, misses := f.store.Format().(*store.Packed).Decodes(); misses != 0 {
			t.Errorf("%d objects were decoded, want 0", misses)
		}
	},
	"KeyFunc": func(t *testing.T) {
		f := newFeed(t, Options{KeyFunc: func(any) (string, error) { return "the key", nil }})
		f.list(1, object("a", 1))
		expect(t, "keys", f.keys(), []string{"the key"})
	},
	"Clock": func(t *testing.T) {
		clock := testclock.NewFakeClock(time.Unix(1000, 0))
		f := newIdleFeed(t, Options{Clock: clock, ResyncPeriod: time.Minute})
		if _, handle := f.handle(); !handle.nextResync.Equal(time.Unix(1060, 0)) {
			t.Errorf("the next resync is due at %v, want after one minute", handle.nextResync)
		}
	},
	"Logger": func(t *testing.T) {
		var logger klog.Logger // discards, unlike the default
		f := newIdleFeed(t, Options{Logger: &logger})
		if _, handle := f.handle(); handle.logger != logger {
			t.Error("the handler has another logger than the informer")
		}
	},
	"MinWatchTimeout": func(t *testing.T) {
		requests := requestsOf(t, Options{MinWatchTimeout: time.Hour}, 2, nil)
		if got := *requests[1].TimeoutSeconds; got < 3600 || got > 7200 {
			t.Errorf("TimeoutSeconds of the watch = %d, want 3600 to 7200", got)
		}
	},
	"WatchListPageSize": func(t *testing.T) {
		if requests := requestsOf(t, Options{WatchListPageSize: 17}, 1, nil); requests[0].Limit != 17 {
			t.Errorf("Limit of the list = %d, want 17", requests[0].Limit)
		}
	},
	"Backoff": func(t *testing.T) {
		// With the default, the test would take minutes.
		requestsOf(t, Options{Backoff: &wait.Backoff{Duration: time.Microsecond}, Logger: quiet()}, 12,
			errors.New("no list"))
	},
	"Format": func(t *testing.T) {
		f := newFeed(t, Options{Format: store.NewPacked(nil, nil)})
		f.list(1, object("a", 1))
		if item, _ := f.store.Snapshot().Get("ns/a"); item == nil ||
			reflect.TypeOf(item) != reflect.TypeFor[*packed.Object]() {
			t.Errorf("the stored item is a %T, want a *packed.Object", item)
		}
	},
	"Selects": func(t *testing.T) {
		f := newFeed(t, Options{Selects: func(o runtime.Object) bool {
			return o.(*unstructured.Unstructured).GetResourceVersion() != "3"
		}})
		log, _ := f.handle()
		f.list(1, object("a", 1), object("b", 1))
		f.delete(object("a", 2))
		f.delete(object("b", 3))
		f.flush()
		expect(t, "events", log.sorted(), []string{"delete a2", "delete b1", "initial a1", "initial b1"})
	},
	"SelectsObjects": func(t *testing.T) {
		for _, selects := range []bool{true, false} {
			f := newIdleFeed(t, Options{SelectsObjects: selects})
			f.ok(f.SetTransform(func(obj any) (any, error) {
				if u := obj.(*unstructured.Unstructured); u.GetName() == "changed" {
					u.SetUID("another")
				}
				return obj, nil
			}))
			f.next()
			if err := f.g.Add(object("changed", 1)); errors.Is(err, errIdentityChanged) != selects {
				t.Errorf("Add() of an object with another UID, with objects selected: %v: error %v", selects,
					err)
			}
			f.ok(f.g.Add(object("same", 1)))
		}
	},
}

// verifies fails the test if no comparison with the server is reported.
func verifies(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	i := New(&requests{seen: make(chan metav1.ListOptions, 100)},
		Options{VerifyPeriod: 1, OnVerified: func(bool, error) { cancel() }})
	i.RunWithContext(ctx) // until the first comparison
}

// interruptible is an InlineWatcher without events.
type interruptible struct {
	*requests
	interrupts chan struct{}
}

func (*interruptible) CurrentVersion(context.Context) (string, error) {
	return "", errors.ErrUnsupported
}

func (*interruptible) Probe(context.Context) (string, error) { return "", errors.ErrUnsupported }

func (*interruptible) ListMetadata(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return nil, errors.ErrUnsupported
}

func (q *interruptible) Interrupt() { q.interrupts <- struct{}{} }

func (q *interruptible) WatchInline(ctx context.Context, _ *metav1.ListOptions,
	_ func(watch.Event) bool) error {
	select {
	case <-q.interrupts:
	case <-ctx.Done():
	}
	return nil
}

// relistsForHandler fails unless a handler that is added late causes another list.
func relistsForHandler(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	relists := 0
	q := &interruptible{requests: &requests{seen: make(chan metav1.ListOptions, 100)},
		interrupts: make(chan struct{}, 100)}
	i := New(q, Options{Format: store.NewIdentities(nil), RelistForHandler: func() { relists++; cancel() }})
	added := make(chan error, 1)
	go func() { // ended by the sync
		if err := i.WaitForSync(ctx); err != nil {
			added <- err
			return
		}
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{})
		added <- err
	}()
	i.RunWithContext(ctx) // until the informer lists for the handler
	if err := <-added; err != nil || relists != 1 {
		t.Errorf("%d relists, %v", relists, err)
	}
}

// byFirstLetter is an Extractor of one index.
type byFirstLetter struct{}

func (byFirstLetter) Names() []string { return []string{"letter"} }

func (byFirstLetter) Ordered(int) bool { return false }

func (byFirstLetter) Indexers() cache.Indexers {
	return cache.Indexers{"letter": func(obj any) ([]string, error) {
		return []string{obj.(*unstructured.Unstructured).GetName()[:1]}, nil
	}}
}

func (byFirstLetter) KeysJSON(json []byte, keys [][]string) [][]string {
	_, name, _ := strings.Cut(string(json), `"name":"`)
	return append(keys, []string{name[:1]})
}

func quiet() *klog.Logger { return &klog.Logger{} }

// TestEveryOptionWorks fails if a field of Options has no entry in optionEffects.
func TestEveryOptionWorks(t *testing.T) {
	reported(t)
	fields := reflect.TypeFor[Options]()
	for k := range fields.NumField() {
		name := fields.Field(k).Name
		effect := optionEffects[name]
		if effect == nil {
			t.Errorf("optionEffects has no test for Options.%s", name)
			continue
		}
		t.Run(name, effect)
	}
	if got := len(optionEffects); got != fields.NumField() {
		t.Errorf("optionEffects has %d entries for %d fields", got, fields.NumField())
	}
}

// TestDefaultsKeepSetOptions verifies that withDefaults keeps each value that is set, and sets each other
// one, unless its zero value has a meaning.
func TestDefaultsKeepSetOptions(t *testing.T) {
	set := Options{
		ExampleObject:     &unstructured.Unstructured{},
		ObjectDescription: "d",
		ResyncPeriod:      1,
		VerifyPeriod:      1,
		OnVerified:        func(bool, error) {},
		RelistForHandler:  func() {},
		Indexers:          cache.Indexers{},
		Extractors:        []store.Extractor{},
		KeyFunc:           func(any) (string, error) { return "", nil },
		Clock:             testclock.NewFakeClock(time.Unix(0, 0)),
		Logger:            quiet(),
		MinWatchTimeout:   1,
		WatchListPageSize: 1,
		Backoff:           &wait.Backoff{},
		Format:            store.NewPacked(nil, nil),
		Selects:           func(runtime.Object) bool { return true },
		SelectsObjects:    true,
	}
	zeroIsFine := map[string]bool{
		"SelectsObjects": true, "VerifyPeriod": true, "OnVerified": true,
		"ExampleObject": true, "ResyncPeriod": true, "Extractors": true,
		"MinWatchTimeout": true, "WatchListPageSize": true,
	}
	before, after, defaults := reflect.ValueOf(set), reflect.ValueOf(set.withDefaults()),
		reflect.ValueOf(Options{}.withDefaults())
	for k := range before.NumField() {
		name := before.Type().Field(k).Name
		if before.Field(k).IsZero() {
			t.Errorf("the test does not set Options.%s", name)
		}
		previous, is := before.Field(k), after.Field(k)
		same := false
		if previous.Kind() == reflect.Func || previous.Kind() == reflect.Map {
			same = previous.Pointer() == is.Pointer()
		} else {
			same = reflect.DeepEqual(previous.Interface(), is.Interface())
		}
		if !same {
			t.Errorf("withDefaults changed Options.%s", name)
		}
		if defaults.Field(k).IsZero() != zeroIsFine[name] {
			t.Errorf("the default of Options.%s is %v", name, defaults.Field(k))
		}
	}
}
