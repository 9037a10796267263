package discovery

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func bookmark(end string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: end}}}
}

func TestStallGuard(t *testing.T) {
	tests := map[string]struct {
		ended bool // the initial events are complete
		want  watch.EventType
	}{
		"silence before the end is an error": {want: watch.Error},
		"silence after the end is normal":    {ended: true, want: watch.Modified},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := watch.NewFakeWithChanSize(10, false)
				g := guardStall(source, time.Second)
				defer g.Stop()
				for range 3 { // events in time keep it alive
					source.Add(bookmark(""))
					<-g.ResultChan()
					time.Sleep(900 * time.Millisecond)
				}
				if tt.ended {
					source.Action(watch.Bookmark, bookmark("true"))
					<-g.ResultChan()
				}
				time.Sleep(500 * time.Millisecond)
				if !source.IsStopped() {
					source.Modify(bookmark(""))
				}
				if e := <-g.ResultChan(); e.Type != tt.want {
					t.Errorf("got %v, want %v", e.Type, tt.want)
				}
			})
		})
	}
}

func TestStallGuardEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails when the goroutine stays
		source := watch.NewFakeWithChanSize(10, false)
		g := guardStall(source, time.Second)
		source.Add(bookmark(""))
		synctest.Wait() // blocked on a reader that never comes
		g.Stop()
		g.Stop()
		for range g.ResultChan() {
		}
	})
}
