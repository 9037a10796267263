package live

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crdcache/crdcache/test/testcluster"
)

// changeOtherType changes an object of another type, which raises the resource version of the cluster.
func (f *fixture) changeOtherType(name string) {
	f.Helper()
	f.must(f.cluster.Load(f.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}))
}

// answerGapChecks returns a function that counts the short watches of environments, with which the server
// checks whether it missed changes. If answer is set, it responds to them.
func answerGapChecks(cluster *testcluster.Cluster, answer testcluster.Effect) func() int {
	var count atomic.Int32
	cluster.Faults().Add(testcluster.Fault{
		Match: testcluster.Match{Verbs: []string{"watch"}, Resource: "environments"},
		Effect: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.URL.Query().Get("timeoutSeconds") != probeSeconds {
				next.ServeHTTP(w, r)
				return
			}
			count.Add(1)
			if answer != nil {
				answer(w, r, next)
				return
			}
			next.ServeHTTP(w, r)
		},
	})
	return func() int { return int(count.Load()) }
}

// watchFrom returns the path of a watch of environments.
func watchFrom(version string) string {
	return environmentsPath + "?watch=true&allowWatchBookmarks=true&resourceVersion=" + version
}

// watchResult returns the events of a short watch of environments.
func (f *fixture) watchResult(version string) string {
	f.Helper()
	return get(f.T, f.server, watchFrom(version)+"&timeoutSeconds=1").Body.String()
}

// page is a list of environments.
type page struct {
	Metadata struct{ ResourceVersion, Continue string }
	Items    []environment
}

func (f *fixture) page(query string) page {
	f.Helper()
	w := get(f.T, f.server, environmentsPath+query)
	var p page
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != http.StatusOK {
		f.Fatalf("GET %s = %d %s, want a page", query, w.Code, w.Body)
	}
	return p
}

// TestClientsOfAnEarlierProcess verifies that watches continue from versions that an earlier process sent if
// no object of their type has changed since. One request to the API server confirms that.
func TestClientsOfAnEarlierProcess(t *testing.T) {
	earlier := newFixture(t, Options{})
	for n := range 4 {
		earlier.awaitVersion(earlier.writeEnvironment(fmt.Sprint("e", n), "dev"))
	}
	fullList := earlier.page("?limit=1000")
	firstPage := earlier.page("?limit=3")
	var versions []string
	for n := range 3 { // each client has received a different bookmark
		earlier.changeOtherType(fmt.Sprint("other", n))
		versions = append(versions, earlier.page("").Metadata.ResourceVersion)
	}
	earlier.changeOtherType("last")

	s := newFixtureOf(t, earlier.cluster, Options{FreshTimeout: time.Minute}) // the machine may be busy
	h := s.server.cacheOf(environments.GroupResource()).informer.History()
	if h.Oldest <= parseVersion(versions[2]) {
		t.Fatalf("the history begins at %d, want later than the clients' versions %v", h.Oldest, versions)
	}
	gapChecks := answerGapChecks(s.cluster, nil)
	var watches []*stream
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, version := range versions {
		group.Go(func() { // ends with the response
			w := s.watch(watchFrom(version))
			mu.Lock()
			defer mu.Unlock()
			watches = append(watches, w)
		})
	}
	rest := s.page("?continue=" + url.QueryEscape(firstPage.Metadata.Continue))
	group.Wait()
	if n := gapChecks(); n < 1 || n > 3 {
		t.Errorf("%d requests to the API server, want 1 to 3", n)
	}
	if got := slices.Concat(firstPage.Items, rest.Items); !slices.Equal(got, fullList.Items) {
		t.Errorf("the pages are %v, want %v", got, fullList.Items)
	}
	if got, want := rest.Metadata.ResourceVersion, firstPage.Metadata.ResourceVersion; got != want {
		t.Errorf("the second page is of version %s, and the first of %s", got, want)
	}
	s.writeEnvironment("later", "dev")
	for _, w := range watches {
		if e, _ := w.next(); e.Type != "ADDED" || e.Object.Metadata.Name != "later" {
			t.Errorf("the first event after the restart is %+v, want ADDED later", e)
		}
	}
}

// TestClientsThatMissedChanges verifies that clients that have missed a change list again. The others
// continue, and pages continue with the latest objects if the client accepts that.
func TestClientsThatMissedChanges(t *testing.T) {
	earlier := newFixture(t, Options{})
	for n := range 4 {
		earlier.awaitVersion(earlier.writeEnvironment(fmt.Sprint("e", n), "dev"))
	}
	firstPage := earlier.page("?limit=3")
	earlier.changeOtherType("one")
	missedVersion := earlier.page("").Metadata.ResourceVersion
	changed := earlier.writeEnvironment("e0", "prod").GetResourceVersion()
	earlier.changeOtherType("two")

	s := newFixtureOf(t, earlier.cluster, Options{})
	gapChecks := answerGapChecks(s.cluster, nil)
	if got := s.watchResult(missedVersion); !strings.Contains(got, `"code":410`) {
		t.Errorf("a client that has missed a change gets %s, want 410", got)
	}
	s.watch(watchFrom(changed)).body.Close()
	got := get(t, s.server, environmentsPath+"?continue="+url.QueryEscape(firstPage.Metadata.Continue))
	var status struct{ Metadata struct{ Continue string } }
	if err := json.Unmarshal(got.Body.Bytes(), &status); err != nil || got.Code != http.StatusGone {
		t.Fatalf("the next page = %d %s, want 410", got.Code, got.Body)
	}
	rest, latest := s.page("?continue="+url.QueryEscape(status.Metadata.Continue)), s.page("")
	if !slices.Equal(rest.Items, latest.Items[len(firstPage.Items):]) {
		t.Errorf("the inconsistent page = %v, want the latest objects", rest)
	}
	if n := gapChecks(); n != 1 {
		t.Errorf("%d requests to the API server, want 1", n)
	}
}

// TestVersionsForgottenByServer verifies that the changes since a version are requested once if the API
// server no longer has them.
func TestVersionsForgottenByServer(t *testing.T) {
	before := newFixture(t, Options{})
	old := before.writeEnvironment("e", "dev").GetResourceVersion()
	before.awaitVersion(before.writeEnvironment("e", "prod"))
	before.changeOtherType("one")
	s := newFixtureOf(t, before.cluster, Options{})
	gapChecks := answerGapChecks(s.cluster, testcluster.ExpiredEvent())
	for range 3 {
		if got := s.watchResult(old); !strings.Contains(got, `"code":410`) {
			t.Errorf("a watch from a forgotten version gets %s, want 410", got)
		}
	}
	if n := gapChecks(); n != 1 {
		t.Errorf("%d requests to the API server, want 1", n)
	}
}

// TestQuietTypesAreFresh verifies that an up-to-date list of a quiet type waits for no bookmark, up to
// 5,000 objects, and that all lists of larger types wait for the same one.
func TestQuietTypesAreFresh(t *testing.T) {
	for _, tt := range []struct{ objects, bookmarks int }{{10, 0}, {600, 0}, {5001, 1}} {
		t.Run(fmt.Sprint(tt.objects), func(t *testing.T) {
			var bookmarks func() int
			s := newFixture(t, Options{}, func(cluster *testcluster.Cluster) {
				var objects []runtime.Object
				for i := range tt.objects {
					objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
						"apiVersion": demoGroup + "/v1", "kind": "Environment",
						"metadata": map[string]any{"name": fmt.Sprint("quiet-", i)}}})
				}
				if err := cluster.Load(t.Context(), objects...); err != nil {
					t.Fatal(err)
				}
				bookmarks = answerGapChecks(cluster, nil)
			})
			s.changeOtherType("other")
			var lists sync.WaitGroup
			for range 4 {
				lists.Go(func() { // ends with the response
					list := get(t, s.server, environmentsPath)
					n := strings.Count(list.Body.String(), `"quiet-`)
					if list.Code != http.StatusOK || n != tt.objects {
						t.Errorf("list = %d with %d objects, want all %d", list.Code, n, tt.objects)
					}
				})
			}
			lists.Wait()
			if got := bookmarks(); got != tt.bookmarks {
				t.Errorf("%d watches waited for a bookmark, want %d", got, tt.bookmarks)
			}
		})
	}
}

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
