package requests

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// recordingReporter records the reports about a watch.
type recordingReporter struct {
	discardReporter
	calls []string
}

func (l *recordingReporter) record(format string, args ...any) {
	l.calls = append(l.calls, fmt.Sprintf(format, args...))
}

func (l *recordingReporter) RequestEnded(_ Verb, err error) { l.record("%v", ReasonOf(err)) }
func (l *recordingReporter) NoContact()                     { l.record("no contact") }
func (l *recordingReporter) RelistRequested()               {}
func (l *recordingReporter) WatchOpened()                   { l.record("opened") }
func (l *recordingReporter) ListCompleted(time.Duration)    { l.record("listed") }
func (l *recordingReporter) RecordContact(initial bool)     { l.record("contact initial=%v", initial) }

// followWatch returns the watch that a listWatch makes of the open watch w.
func followWatch(t *testing.T, w watch.Interface, initial bool, reports Reporter,
	keep func(runtime.Object) bool) watch.Interface {
	t.Helper()
	l := &listWatch{
		resource: openedResource{w}, continuity: NewRestoreDetector().Continuity("", nil), reports: reports,
		filter: keep,
		pacer:  NewPacer(false, false, NewRetrySignal()), limiter: NewListPool(1).NewLimiter(1, time.Now),
	}
	verb := VerbWatch
	if initial {
		verb = VerbWatchList
	}
	o, err := l.open(t.Context(), verb, &metav1.ListOptions{SendInitialEvents: &initial})
	must(t, err)
	if initial {
		o.initial = &initialList{release: func() {}}
		o.maxSilence = InitialEventsTimeout
	}
	return newPipe(o.attempt, func(take func(watch.Event) bool) {
		defer l.endWatch(o)
		l.forward(o, take)
	})
}

// openedResource is a resource with one watch, which is open.
type openedResource struct{ watch.Interface }

func (openedResource) List(context.Context, metav1.ListOptions, bool) (runtime.Object, error) {
	return nil, nil
}

func (r openedResource) Events(ctx context.Context, _ metav1.ListOptions) (events, error) {
	a := ctx.Value(attemptKey{}).(*attempt)
	a.clientReads = true
	return &clientEvents{r.Interface, ctx, a}, nil
}

func object(namespace, name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func bookmark(end string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: end}}}
}

// TestStreamAfterTheInitialEvents checks that a watch-list can be silent after its initial events.
func TestStreamAfterTheInitialEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := watch.NewFakeWithChanSize(1, false)
		var l recordingReporter
		s := followWatch(t, source, true, &l, nil)
		source.Action(watch.Bookmark, bookmark("true"))
		<-s.ResultChan()
		time.Sleep(time.Hour)
		source.Add(object("web", "a"))
		if e := <-s.ResultChan(); e.Type != watch.Added {
			t.Errorf("after an hour without data, got the event %v, want ADDED", e)
		}
		s.Stop()
		s.Stop()
		synctest.Wait()
		if !slices.Equal(l.calls, []string{"contact initial=true", "contact initial=false", "opened",
			"listed", "contact initial=false"}) || !source.IsStopped() {
			t.Errorf("the reports are %v, want one list, and IsStopped", l.calls)
		}
	})
}

func TestStreamFilters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := watch.NewFakeWithChanSize(4, false)
		var l recordingReporter
		s := followWatch(t, source, false, &l,
			func(obj runtime.Object) bool { return obj.(*metav1.PartialObjectMetadata).Namespace != "db" })
		source.Add(object("db", "a"))
		source.Delete(object("db", "b"))
		source.Add(object("web", "c"))
		source.Action(watch.Bookmark, bookmark(""))
		source.Stop()
		var got []watch.EventType
		for e := range s.ResultChan() {
			got = append(got, e.Type)
		}
		if !slices.Equal(got, []watch.EventType{watch.Added, watch.Bookmark}) {
			t.Errorf("forwarded the events %v, want ADDED and BOOKMARK", got)
		}
	})
}

// TestStreamStopsWithoutAReader checks that Stop does not wait until the last event is received.
func TestStreamStopsWithoutAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails if the goroutine remains
		source := watch.NewFakeWithChanSize(9, false)
		s := followWatch(t, source, false, discardReporter{}, nil)
		for range 9 {
			source.Add(object("web", "a"))
		}
		synctest.Wait()
		s.Stop()
		for range s.ResultChan() {
		}
	})
}

// TestSlowReaderIsNotAStall verifies that initial events that wait for their reader do not count as a stalled
// watch-list.
func TestSlowReaderIsNotAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 256
		source := watch.NewFakeWithChanSize(events, false)
		var l recordingReporter
		s := followWatch(t, source, true, &l, nil)
		for range events {
			source.Add(object("web", "a"))
		}
		time.Sleep(2 * InitialEventsTimeout)
		for range events {
			if e := <-s.ResultChan(); e.Type != watch.Added {
				t.Errorf("the stream sent %v, want ADDED", e)
			}
		}
		time.Sleep(InitialEventsTimeout - 1)
		source.Action(watch.Bookmark, bookmark("true"))
		if e := <-s.ResultChan(); e.Type != watch.Bookmark {
			t.Errorf("the next event is %v, want BOOKMARK", e)
		}
		s.Stop()
		synctest.Wait()
	})
}

// TestReader verifies that lists and events lack exactly the removed fields. With the client of client-go,
// the objects are whole.
func TestReader(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n"+`{"type":"ERROR","object":%s}`+"\n", jsonGadget,
				jsonExpired)
			return
		}
		fmt.Fprint(w, `{"apiVersion":"example.com/v1","kind":"GadgetList","metadata":{"continue":"","resourceVersion":"900",`+
			`"remainingItemCount":2},"items":[`+jsonGadget+","+jsonGadget+"]}")
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, QPS: -1}
	own, err := NewClient(config, nil)
	must(t, err)
	stock := dynamic.NewForConfigOrDie(config)
	want, err := stock.Resource(gadgets).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if want.Items[0].Object["spec"] == nil {
		t.Fatalf("the gadget %v has no spec to remove", want.Items[0])
	}
	for _, client := range []dynamic.Interface{stock, own} {
		if client == own {
			for k := range want.Items {
				unstructured.RemoveNestedField(want.Items[k].Object, "spec")
			}
		}
		reader := NewReader(client, NewRestoreDetector(), gadgets, []string{"spec"})
		list, err := reader.List(t.Context(), metav1.ListOptions{})
		must(t, err)
		if diff := cmp.Diff(want.Items, list.Items); diff != "" ||
			list.GetResourceVersion() != want.GetResourceVersion() ||
			*list.GetRemainingItemCount() != *want.GetRemainingItemCount() {
			t.Errorf("%T: the list has the metadata %v and items (-want +got):\n%s", client, list.Object, diff)
		}
		w, err := reader.Watch(t.Context(), metav1.ListOptions{})
		must(t, err)
		added, failed := <-w.ResultChan(), <-w.ResultChan()
		if diff := cmp.Diff(&want.Items[0], added.Object); diff != "" {
			t.Errorf("%T: the event has the object (-want +got):\n%s", client, diff)
		}
		if status, ok := failed.Object.(*metav1.Status); !ok || status.Code != http.StatusGone {
			t.Errorf("%T: the second event is %v, want 410", client, failed)
		}
		w.Stop()
	}
}
