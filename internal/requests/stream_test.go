package requests

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// listener notes what a stream reports.
type listener struct{ heard []string }

func (l *listener) hooks(initial bool) Hooks {
	note := func(what string) func() { return func() { l.heard = append(l.heard, what) } }
	return Hooks{
		Initial: initial,
		First:   note("first"),
		Failed:  func(err error) { l.heard = append(l.heard, string(apierrors.ReasonForError(err))) },
		Listed:  note("listed"),
		Closed: func(brought bool) error {
			l.heard = append(l.heard, fmt.Sprintf("closed brought=%v", brought))
			return nil
		},
		Stalled: note("stalled"),
		Ended:   note("ended"),
	}
}

func object(namespace, name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

func bookmark(end string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: end}}}
}

func TestStream(t *testing.T) {
	event := func(kind watch.EventType, obj runtime.Object) watch.Event {
		return watch.Event{Type: kind, Object: obj}
	}
	added, end := event(watch.Added, object("web", "a")), event(watch.Bookmark, bookmark("true"))
	status := &metav1.Status{Status: metav1.StatusFailure, Code: 429, Reason: metav1.StatusReasonTooManyRequests}
	tests := map[string]struct {
		initial bool
		pause   time.Duration // before each event
		events  []watch.Event
		want    []string
		passed  []watch.EventType
	}{
		"events":                        {false, time.Hour, []watch.Event{added, added}, []string{"first", "closed brought=true", "ended"}, []watch.EventType{watch.Added, watch.Added}},
		"nothing":                       {false, time.Hour, nil, []string{"closed brought=false", "ended"}, nil},
		"an error":                      {false, 0, []watch.Event{added, event(watch.Error, status)}, []string{"first", "TooManyRequests", "ended"}, []watch.EventType{watch.Added, watch.Error}},
		"initial events":                {true, Patience - 1, []watch.Event{added, added, end}, []string{"first", "listed", "closed brought=false", "ended"}, []watch.EventType{watch.Added, watch.Added, watch.Bookmark}},
		"events after these":            {true, 0, []watch.Event{added, end, added}, []string{"first", "listed", "closed brought=true", "ended"}, []watch.EventType{watch.Added, watch.Bookmark, watch.Added}},
		"no initial events":             {true, 0, []watch.Event{end}, []string{"first", "listed", "closed brought=false", "ended"}, []watch.EventType{watch.Bookmark}},
		"other bookmarks end nothing":   {true, 0, []watch.Event{event(watch.Bookmark, bookmark(""))}, []string{"first", "Timeout", "ended"}, []watch.EventType{watch.Bookmark, watch.Error}},
		"initial events that stall":     {true, Patience + 1, []watch.Event{added}, []string{"stalled", "ended"}, []watch.EventType{watch.Error}},
		"initial events that are ended": {true, 0, []watch.Event{added}, []string{"first", "Timeout", "ended"}, []watch.EventType{watch.Added, watch.Error}},
		"initial events that fail":      {true, 0, []watch.Event{added, event(watch.Error, status)}, []string{"first", "TooManyRequests", "ended"}, []watch.EventType{watch.Added, watch.Error}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := watch.NewFakeWithChanSize(len(tt.events), false)
				var l listener
				s := NewStream(source, l.hooks(tt.initial))
				fed := make(chan struct{})
				go func() { // ended by the events
					defer close(fed)
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
				<-fed
				synctest.Wait()
				if diff := cmp.Diff(tt.want, l.heard); diff != "" {
					t.Errorf("reports (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.passed, passed); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestStreamAfterTheInitialEvents: silence is normal then.
func TestStreamAfterTheInitialEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := watch.NewFakeWithChanSize(1, false)
		var l listener
		s := NewStream(source, l.hooks(true))
		source.Action(watch.Bookmark, bookmark("true"))
		<-s.ResultChan()
		time.Sleep(time.Hour)
		source.Add(object("web", "a"))
		if e := <-s.ResultChan(); e.Type != watch.Added {
			t.Errorf("after an hour of silence the stream brings %v", e)
		}
		s.Stop()
		s.Stop()
		synctest.Wait()
		if !slices.Equal(l.heard, []string{"first", "listed", "ended"}) || !source.IsStopped() {
			t.Errorf("the reports are %v", l.heard)
		}
	})
}

func TestStreamKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := watch.NewFakeWithChanSize(4, false)
		s := NewStream(source, Hooks{Keep: func(obj runtime.Object) bool { return obj.(*metav1.PartialObjectMetadata).Namespace != "db" }})
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
			t.Errorf("what is kept is %v", got)
		}
	})
}

// TestStreamStopsWithoutAReader: nobody need take the last event.
func TestStreamStopsWithoutAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails when the goroutine stays
		source := watch.NewFakeWithChanSize(buffered+1, false)
		s := NewStream(source, Hooks{})
		for range buffered + 1 {
			source.Add(object("web", "a"))
		}
		synctest.Wait()
		s.Stop()
		for range s.ResultChan() {
		}
	})
}

// TestSlowReaderIsNoStall: initial events that wait for their reader have not stopped.
func TestSlowReaderIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 2 * buffered
		source := watch.NewFakeWithChanSize(events, false)
		var l listener
		s := NewStream(source, l.hooks(true))
		for range events {
			source.Add(object("web", "a"))
		}
		time.Sleep(2 * Patience)
		for range events {
			if e := <-s.ResultChan(); e.Type != watch.Added {
				t.Errorf("the stream brings %v", e)
			}
		}
		time.Sleep(Patience - 1)
		source.Action(watch.Bookmark, bookmark("true"))
		if e := <-s.ResultChan(); e.Type != watch.Bookmark {
			t.Errorf("then the stream brings %v", e)
		}
		s.Stop()
		synctest.Wait()
	})
}
