package live

import (
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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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
