package live

import (
	"context"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/test/testcluster"
)

// eventDelay holds back the watch events of a resource from a call of block until open is called.
type eventDelay struct{ blockedUntil atomic.Pointer[chan struct{}] }

// delayWatches returns a cluster option that delays the watch events of a resource while e is blocked.
func (e *eventDelay) delayWatches(resource string) func(*testcluster.Cluster) {
	return func(cluster *testcluster.Cluster) {
		cluster.Faults().Add(testcluster.Fault{
			Match: testcluster.Match{Verbs: []string{"watch", "watch-list"}, Resource: resource},
			Effect: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				next.ServeHTTP(&delayedWriter{w, e, r.Context()}, r)
			},
		})
	}
}

// block delays events until open is called.
func (e *eventDelay) block() (open func()) {
	until := make(chan struct{})
	e.blockedUntil.Store(&until)
	return func() {
		e.blockedUntil.Store(nil)
		close(until)
	}
}

type delayedWriter struct {
	http.ResponseWriter
	*eventDelay
	ctx context.Context
}

// Unwrap is called by http.ResponseController.
func (w *delayedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *delayedWriter) Write(data []byte) (int, error) {
	if until := w.blockedUntil.Load(); until != nil {
		select {
		case <-*until:
		case <-w.ctx.Done():
			return 0, w.ctx.Err()
		}
	}
	return w.ResponseWriter.Write(data)
}

// TestWatchReportsLateEvents creates and deletes an object before the informer receives the events; a list
// confirms that the cache is complete. It verifies that a watch continued from the API server or another
// cache, where the object existed, receives the deletion. A watch from an earlier version receives both
// events.
func TestWatchReportsLateEvents(t *testing.T) {
	var events eventDelay
	s := newFixture(t, Options{}, events.delayWatches("environments"))
	first := s.writeEnvironment("first", "a")
	s.awaitVersion(first)
	open := events.block()
	brief := s.writeEnvironment("brief", "a")
	s.deleteEnvironment("brief")
	if list := get(t, s.server, environmentsPath); list.Code != http.StatusOK {
		t.Fatalf("list = %d %s, want 200", list.Code, list.Body)
	}
	before := s.watch(environmentsPath + "?watch=true&resourceVersion=" + first.GetResourceVersion())
	during := s.watch(environmentsPath + "?watch=true&resourceVersion=" + brief.GetResourceVersion())
	bookmarks := s.watch(environmentsPath +
		"?watch=true&allowWatchBookmarks=true&timeoutSeconds=1&resourceVersion=" + first.GetResourceVersion())
	if e, _ := bookmarks.next(); e.Type != "BOOKMARK" ||
		parseVersion(e.Object.Metadata.ResourceVersion) >= parseVersion(brief.GetResourceVersion()) {
		t.Errorf("the watch sent %+v, want a bookmark before the version of the late change", e)
	}
	open()
	for watch, wants := range map[*stream][]string{before: {"ADDED brief", "DELETED brief"},
		during: {"DELETED brief"}} {
		for _, want := range wants {
			if e, _ := watch.next(); e.Type+" "+e.Object.Metadata.Name != want {
				t.Errorf("the watch sent %+v, want %s", e, want)
			}
		}
	}
}

// TestPagesBegunElsewhere verifies that a list that began at the API server or at another cache continues at
// a cache that has not yet received the version.
func TestPagesBegunElsewhere(t *testing.T) {
	s := newFixture(t, Options{})
	s.awaitVersion(s.writeEnvironment("zz", "a"))
	// a change of another type increases the version
	s.must(s.cluster.Load(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "later"},
	}}))
	page, err := s.cluster.Client().Resource(environments).List(t.Context(), metav1.ListOptions{Limit: 1})
	s.must(err)
	got := get(t, s.server, environmentsPath+"?limit=1&continue="+url.QueryEscape(page.GetContinue()))
	want := get(t, s.cluster, environmentsPath+"?limit=1&continue="+url.QueryEscape(page.GetContinue()))
	if got.Code != http.StatusOK || got.Body.String() != want.Body.String() {
		t.Errorf("the next page is %d %s, want %s", got.Code, got.Body, want.Body)
	}
}
