package discovery

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// stallTimeout is how long an initial watch-list may be silent before it is given up for a list. Some
// proxies drop the bookmark that ends the initial events; the watch would then wait for it forever.
const stallTimeout = 30 * time.Second

// stallGuard passes on the events of a watch-list, and ends it with an error event when nothing arrives
// for a while before its initial events are complete.
type stallGuard struct {
	source watch.Interface
	out    chan watch.Event
	quit   chan struct{} // closed by Stop
	once   sync.Once
}

// guardStall starts a goroutine that ends with Stop or with source.
func guardStall(source watch.Interface, timeout time.Duration) *stallGuard {
	g := &stallGuard{source: source, out: make(chan watch.Event), quit: make(chan struct{})}
	go g.pass(timeout)
	return g
}

func (g *stallGuard) ResultChan() <-chan watch.Event { return g.out }

func (g *stallGuard) Stop() {
	g.once.Do(func() { close(g.quit) })
	g.source.Stop()
}

func (g *stallGuard) pass(timeout time.Duration) {
	defer close(g.out)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		var e watch.Event
		var ok bool
		select {
		case <-g.quit:
			return
		case <-timer.C:
			e, ok = stalled(timeout), true
			g.source.Stop()
		case e, ok = <-g.source.ResultChan():
		}
		if !ok {
			return
		}
		select {
		case g.out <- e:
		case <-g.quit:
			return
		}
		if endsInitialEvents(e) {
			timer.Stop()
			timeout = 0
		}
		if timeout > 0 {
			timer.Reset(timeout)
		}
	}
}

// stalled is an error that makes a reflector fall back to a list.
func stalled(timeout time.Duration) watch.Event {
	return watch.Event{Type: watch.Error, Object: &metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonTimeout, Code: http.StatusGatewayTimeout,
		Message: fmt.Sprintf("the initial events of a watch-list stopped for %v", timeout),
	}}
}

func endsInitialEvents(e watch.Event) bool {
	if e.Type != watch.Bookmark {
		return false
	}
	o, err := meta.Accessor(e.Object)
	return err == nil && o.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}
