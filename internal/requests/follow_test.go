package requests

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
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
		continuity: NewRestoreDetector().Continuity("", nil), reports: reports, filter: keep,
		pacer: NewPacer(false, false, NewRetrySignal()), limiter: NewListPool(1).NewLimiter(1, time.Now),
	}
	return l.followDynamic(t.Context(), w, initial)
}

func object(namespace, name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func bookmark(end string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: end}}}
}

func TestStream(t *testing.T) {
	event := func(kind watch.EventType, obj runtime.Object) watch.Event {
		return watch.Event{Type: kind, Object: obj}
	}
	added, end := event(watch.Added, object("web", "a")), event(watch.Bookmark, bookmark("true"))
	status := &metav1.Status{Status: metav1.StatusFailure, Code: 429,
		Reason: metav1.StatusReasonTooManyRequests}
	tests := map[string]struct {
		initial bool
		pause   time.Duration // before each event
		events  []watch.Event
		want    []string
		passed  []watch.EventType
	}{
		"events": {false, time.Hour, []watch.Event{added, added}, []string{"contact initial=false",
			"contact initial=false"}, []watch.EventType{watch.Added, watch.Added}},
		"nothing": {false, time.Hour, nil, []string{"no contact"}, []watch.EventType{watch.Error}},
		"an error": {false, 0, []watch.Event{added, event(watch.Error, status)},
			[]string{"contact initial=false", "Throttled"}, []watch.EventType{watch.Added, watch.Error}},
		"an odd event": {false, 0, []watch.Event{undecodableEvent(io.ErrNoProgress)},
			[]string{"no contact", "RequestFailed"}, []watch.EventType{watch.Error}},
		"initial events": {true, InitialEventsTimeout - 1, []watch.Event{added, added, end}, []string{
			"contact initial=true", "contact initial=true", "contact initial=true", "contact initial=false",
			"opened", "listed", "no contact",
		}, []watch.EventType{watch.Added, watch.Added, watch.Bookmark, watch.Error}},
		"events after these": {true, 0, []watch.Event{added, end, added}, []string{
			"contact initial=true", "contact initial=true", "contact initial=false", "opened", "listed",
			"contact initial=false",
		}, []watch.EventType{watch.Added, watch.Bookmark, watch.Added}},
		"no initial events": {true, 0, []watch.Event{end}, []string{
			"contact initial=true", "contact initial=false", "opened", "listed", "no contact",
		}, []watch.EventType{watch.Bookmark, watch.Error}},
		"other bookmarks end nothing": {true, 0, []watch.Event{event(watch.Bookmark, bookmark(""))},
			[]string{"contact initial=true"}, []watch.EventType{watch.Bookmark, watch.Error}},
		"initial events that stall": {true, InitialEventsTimeout + 1, []watch.Event{added}, nil,
			[]watch.EventType{watch.Error}},
		"initial events that are ended": {true, 0, []watch.Event{added}, []string{"contact initial=true"},
			[]watch.EventType{watch.Added, watch.Error}},
		"no events at all": {true, 0, nil, []string{"no contact"},
			[]watch.EventType{watch.Error}},
		"initial events that fail": {true, 0, []watch.Event{added, event(watch.Error, status)},
			[]string{"contact initial=true", "Throttled"}, []watch.EventType{watch.Added, watch.Error}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := watch.NewFakeWithChanSize(len(tt.events), false)
				var l recordingReporter
				s := followWatch(t, source, tt.initial, &l, nil)
				sent := make(chan struct{})
				go func() { // ended by the events
					defer close(sent)
					for _, e := range tt.events {
						time.Sleep(tt.pause)
						if !source.IsStopped() {
							source.Action(e.Type, e.Object)
						}
					}
					source.Stop()
				}()
				var passed []watch.EventType
				for e := range s.ResultChan() {
					passed = append(passed, e.Type)
				}
				<-sent
				synctest.Wait()
				if diff := cmp.Diff(tt.want, l.calls); diff != "" {
					t.Errorf("reports (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.passed, passed); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
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
