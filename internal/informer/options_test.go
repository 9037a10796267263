package informer

import (
	"context"
	"errors"
	"fmt"
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

// recordingListerWatcher is a ListerWatcher that records its requests. List succeeds or returns err; a watch
// sends no events.
type recordingListerWatcher struct {
	err   error
	seen  chan metav1.ListOptions
	items []unstructured.Unstructured
}

func (q *recordingListerWatcher) IsWatchListSemanticsUnSupported() bool { return true }

func (q *recordingListerWatcher) List(o metav1.ListOptions) (runtime.Object, error) {
	return q.ListWithContext(context.Background(), o)
}

func (q *recordingListerWatcher) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return q.WatchWithContext(context.Background(), o)
}

func (q *recordingListerWatcher) ListWithContext(ctx context.Context,
	o metav1.ListOptions) (runtime.Object, error) {
	select {
	case q.seen <- o:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return &unstructured.UnstructuredList{Items: q.items, Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": "7"},
	}}, q.err
}

func (q *recordingListerWatcher) WatchWithContext(ctx context.Context,
	o metav1.ListOptions) (watch.Interface, error) {
	select {
	case q.seen <- o:
	case <-ctx.Done():
	}
	return watch.NewFake(), nil
}

// recordRequests runs an informer until it has sent n requests, and returns them.
func recordRequests(t *testing.T, options Options, n int, err error) []metav1.ListOptions {
	t.Helper()
	q := &recordingListerWatcher{err: err, seen: make(chan metav1.ListOptions)}
	i := New(InlineWatcherOf(q), options)
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
	"ObjectDescription": func(t *testing.T) {
		i := New(nil, Options{ObjectDescription: "things"})
		if got := i.syncName(); got != "informer of things" {
			t.Errorf("syncName() = %q, want the ObjectDescription", got)
		}
	},
	"ResyncPeriod": func(t *testing.T) {
		f := newIdleFeed(t, Options{ResyncPeriod: time.Minute})
		if got := f.Informer.mu.handlers.Resyncs.Period; got != time.Minute {
			t.Errorf("the check period of resyncs = %v, want 1m", got)
		}
	},
	"VerifyPeriod": expectVerification, "OnVerified": expectVerification,
	"Indexers": func(t *testing.T) {
		for _, tc := range []struct {
			given cache.Indexers
			want  []string
		}{{nil, []string{cache.NamespaceIndex}}, {cache.Indexers{},
			nil}, {cache.Indexers{"x": indexOddVersions}, []string{"x"}}} {
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
			Extractors: []store.Extractor{firstLetterExtractor{}}})
		f.list(1, object("a1", 1), object("a2", 1), object("b", 1))
		keys, err := f.GetIndexer().IndexKeys("letter", "a")
		f.ok(err)
		expect(t, "keys", keys, []string{"ns/a1", "ns/a2"})
		if _, misses := f.store.Format().(*store.Packed).Decodes(); misses != 0 {
			t.Errorf("%d objects were decoded, want 0", misses)
		}
	},
	"Clock": func(t *testing.T) {
		clock := testclock.NewFakeClock(time.Unix(1000, 0))
		f := newIdleFeed(t, Options{Clock: clock, ResyncPeriod: time.Minute})
		f.recordEvents()
		if h := &f.Informer.mu.handlers; h.SelectDue(time.Unix(1059, 0)) || !h.SelectDue(time.Unix(1060, 0)) {
			t.Error("the next resync is not due after one minute")
		}
	},
	"Logger": func(t *testing.T) {
		var logger klog.Logger // discards, unlike the default
		f := newIdleFeed(t, Options{Logger: &logger})
		if *f.delivery.Logger != logger {
			t.Error("handlers have another logger than the informer")
		}
	},
	"MinWatchTimeout": func(t *testing.T) {
		requests := recordRequests(t, Options{MinWatchTimeout: time.Hour}, 2, nil)
		if got := *requests[1].TimeoutSeconds; got < 3600 || got > 7200 {
			t.Errorf("TimeoutSeconds of the watch = %d, want 3600 to 7200", got)
		}
	},
	"WatchListPageSize": func(t *testing.T) {
		if requests := recordRequests(t, Options{WatchListPageSize: 17}, 1, nil); requests[0].Limit != 17 {
			t.Errorf("Limit of the list = %d, want 17", requests[0].Limit)
		}
	},
	"Backoff": func(t *testing.T) {
		// With the default, the test would take minutes.
		recordRequests(t,
			Options{Backoff: &wait.Backoff{Duration: time.Microsecond}, Logger: discardLogger()}, 12,
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
		log, _ := f.recordEvents()
		f.list(1, object("a", 1), object("b", 1))
		f.delete(object("a", 2))
		f.delete(object("b", 3))
		f.flush()
		expect(t, "events", log.takeSorted(), []string{"delete a2", "delete b1", "initial a1", "initial b1"})
	},
	"KeepRepeated": func(t *testing.T) {
		for _, format := range []store.Format{nil, store.NewPacked(nil, nil)} {
			f := newFeed(t, Options{KeepRepeated: true, Format: format})
			for _, order := range [][]string{{"a@1", "b@2", "a@3"}, {"a@3", "a@1", "b@2"}} {
				f.list(1, object(order[0], 1), object(order[1], 1), object(order[2], 1))
				var kept []string
				for key, item := range f.store.Snapshot().All {
					kept = append(kept, fmt.Sprintf("%q %s", key, store.UIDOf(item)))
				}
				slices.Sort(kept)
				expect(t, "objects", kept, []string{`"ns/a" 1`, `"ns/a\x00000001" 3`, `"ns/b" 2`})
			}
		}
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
			f.startIncarnation()
			if err := f.partition.Add(object("changed", 1)); errors.Is(err, errIdentityChanged) != selects {
				t.Errorf("Add() of an object with another UID, with objects selected: %v: error %v", selects,
					err)
			}
			f.ok(f.partition.Add(object("same", 1)))
		}
	},
}

// expectVerification fails the test if no comparison with the server is reported.
func expectVerification(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	i := New(InlineWatcherOf(&recordingListerWatcher{seen: make(chan metav1.ListOptions, 100)}),
		Options{VerifyPeriod: 1, OnVerified: func(klog.Logger, Verification, error) { cancel() }})
	i.RunWithContext(ctx) // until the first comparison
}

// firstLetterExtractor is an Extractor of one index.
type firstLetterExtractor struct{}

func (firstLetterExtractor) Names() []string { return []string{"letter"} }

func (firstLetterExtractor) Ordered(int) bool { return false }

func (firstLetterExtractor) Indexers() cache.Indexers {
	return cache.Indexers{"letter": func(obj any) ([]string, error) {
		return []string{obj.(*unstructured.Unstructured).GetName()[:1]}, nil
	}}
}

func (firstLetterExtractor) KeysJSON(json []byte, keys [][]string) [][]string {
	_, name, _ := strings.Cut(string(json), `"name":"`)
	return append(keys, []string{name[:1]})
}

func discardLogger() *klog.Logger { return &klog.Logger{} }

// TestEveryOptionWorks fails if a field of Options has no entry in optionEffects.
func TestEveryOptionWorks(t *testing.T) {
	captureErrors(t)
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
