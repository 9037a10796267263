package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/readapi"
	"github.com/crdcache/crdcache/readapi/testcluster"
)

// sharedScene is a cluster with the project's manifests, and servers that each have a part of some of its types.
type sharedScene struct {
	*testing.T
	cluster *testcluster.Cluster
	servers []*Server
	away    []atomic.Bool // by server: it does not answer
	serial  int           // of changes
}

// shared makes a scene of n servers. prepare may change the sharding of each.
func shared(t *testing.T, key dynamicinformer.ShardKey, n int, prepare ...func(i int, s *Sharding)) *sharedScene {
	t.Helper()
	cluster, err := testcluster.New(t.Context(), testcluster.Options{Paths: []string{"../../testdata/crds", "../../testdata/objects"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &sharedScene{T: t, cluster: cluster, servers: make([]*Server, n), away: make([]atomic.Bool, n)}
	ctx, cancel := context.WithCancel(context.Background())
	tracker, err := discovery.NewTracker(cluster.Config(), discovery.TrackerOptions{})
	s.ok(err)
	tracked := make(chan struct{})
	go func() { defer close(tracked); _ = tracker.Run(ctx) }() // ended by cancel
	t.Cleanup(func() { cancel(); <-tracked })
	for i := range n {
		sharding := &Sharding{Parts: dynamicinformer.SplitHashSpace(n), Own: i, Ask: func(part int, r *http.Request) (*http.Response, error) {
			if part >= n || s.away[part].Load() {
				return nil, errors.New("it is away")
			}
			return readapi.NewTransport(s.servers[part]).RoundTrip(r)
		}}
		for _, change := range prepare {
			change(i, sharding)
		}
		sharding.Shard = dynamicinformer.NewFixedShard(key, sharding.Parts[sharding.Own])
		s.servers[i] = s.serve(ctx, tracker, sharding)
	}
	return s
}

func (s *sharedScene) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// serve starts a server.
func (s *sharedScene) serve(ctx context.Context, tracker *discovery.Tracker, sharding *Sharding) *Server {
	s.Helper()
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: s.cluster.Config(), Types: tracker.Types()})
	s.ok(err)
	server, err := New(Options{Factory: factory, Types: tracker.Types(), Config: s.cluster.Config(), Sharding: sharding, FreshTimeout: time.Minute})
	s.ok(err)
	s.Cleanup(func() {
		server.Close()
		s.ok(factory.Shutdown(context.Background()))
	})
	config, err := indexers.Load("../../testdata/indexes/platform.yaml")
	s.ok(err)
	kept := []schema.GroupVersionResource{workloads, environments, namespaces}
	for _, gvr := range kept {
		options := dynamicinformer.ResourceOptions{Shard: sharding.Shard}
		var indexes []*indexers.Index
		if gvr == workloads {
			resource, _ := config.Resource("workloads")
			indexes = resource.Indexes
			options.Indexes = indexers.CompileIndexes(indexes...)
		}
		handle, err := factory.Acquire(gvr, options)
		s.ok(err)
		s.ok(server.Keep(handle.Informer(), indexes...))
	}
	s.ok(factory.Start(ctx))
	for _, gvr := range kept {
		s.ok(server.WaitForSync(s.Context(), gvr.GroupResource()))
	}
	return server
}

const (
	allWorkloads = "/apis/" + demo + "/v1/workloads"
	inPayments   = "/apis/" + demo + "/v1/namespaces/payments/workloads"
)

var bothKeys = []dynamicinformer.ShardKey{dynamicinformer.ShardByUID, dynamicinformer.ShardByNamespace}

// TestSharedAnswersAreThoseOfTheCluster asks each server for the same as the cluster.
func TestSharedAnswersAreThoseOfTheCluster(t *testing.T) {
	for _, key := range bothKeys {
		t.Run(string(key), func(t *testing.T) {
			s := shared(t, key, 3)
			for i, server := range s.servers {
				for _, tt := range []struct{ path, accept string }{
					{allWorkloads, ""}, {allWorkloads, asTable}, {allWorkloads, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"},
					{allWorkloads + "?includeObject=Object", asTable}, {allWorkloads + "?includeObject=None", asTable},
					{allWorkloads, "application/yaml"}, {allWorkloads, "application/vnd.kubernetes.protobuf,application/json"},
					{allWorkloads + "?limit=2", ""}, {allWorkloads + "?limit=2", asTable}, {allWorkloads + "?limit=1000", ""},
					{allWorkloads + "?resourceVersion=0", ""}, {allWorkloads + "?resourceVersion=0&limit=3", ""}, {allWorkloads + "?resourceVersion=1", ""},
					{allWorkloads + "?resourceVersion=1&resourceVersionMatch=NotOlderThan", ""},
					{allWorkloads + "?resourceVersion=x", ""}, {allWorkloads + "?resourceVersionMatch=Exact", ""}, {allWorkloads + "?resourceVersion=0&resourceVersionMatch=Exact", ""},
					{allWorkloads + "?continue=x", ""}, {allWorkloads + "?continue=e30", ""}, {allWorkloads + "?limit=x", ""},
					{allWorkloads + "?labelSelector=demo.crdcache.dev/team%3Dcheckout", ""}, {allWorkloads + "?labelSelector=((", ""},
					{allWorkloads + "?labelSelector=demo.crdcache.dev/team%3Dcheckout&limit=1", ""},
					{allWorkloads + "?fieldSelector=metadata.name%3Dapi", ""}, {allWorkloads + "?fieldSelector=spec.nothing%3Da", ""},
					{inPayments, ""}, {inPayments, asTable}, {inPayments + "?limit=2", ""},
					{"/apis/" + demo + "/v1/namespaces/none/workloads", ""},
					{inPayments + "/api", ""}, {inPayments + "/api?resourceVersion=0", ""}, {inPayments + "/api?resourceVersion=0", asPartial}, {inPayments + "/api?resourceVersion=0", asTable},
					{inPayments + "/none?resourceVersion=0", ""}, {inPayments + "/api?resourceVersion=x", ""},
					{"/apis/" + demo + "/v1/environments", ""}, {"/apis/" + demo + "/v1/environments?fieldSelector=spec.stage%3Dproduction", ""},
					{"/apis/" + demo + "/v1/environments/production?resourceVersion=0", ""},
					{"/api/v1/namespaces", ""}, {"/api/v1/namespaces?limit=2", ""}, {"/api/v1/namespaces?fieldSelector=status.phase%3DActive", ""},
					{"/api/v1/namespaces/payments?resourceVersion=0", ""}, {"/api/v1/namespaces/none?resourceVersion=0", ""},
				} {
					headers := []string{}
					if tt.accept != "" {
						headers = []string{"Accept", tt.accept}
					}
					want, got := ask(t, s.cluster, tt.path, headers...), ask(t, server, tt.path, headers...)
					if got.Code != want.Code || got.Header().Get("Content-Type") != want.Header().Get("Content-Type") {
						t.Errorf("%d: %s: %d %s, want %d %s: %s", i, tt.path, got.Code, got.Header().Get("Content-Type"), want.Code, want.Header().Get("Content-Type"), got.Body)
					}
					if diff := cmp.Diff(content(t, ageless(want)), content(t, ageless(got))); diff != "" {
						t.Errorf("%d: %s %s (-want +got):\n%s", i, tt.path, tt.accept, diff)
					}
				}
			}
		})
	}
}

// ageless is what was answered without the ages in tables.
func ageless(answer *httptest.ResponseRecorder) string {
	return regexp.MustCompile(`"\d+s"`).ReplaceAllString(answer.Body.String(), `"AGE"`)
}

// change creates, updates or deletes a workload.
func (s *sharedScene) change() {
	s.Helper()
	s.serial++
	n := s.serial
	client := s.cluster.Client().Resource(workloads)
	list, err := client.List(s.Context(), metav1.ListOptions{})
	s.ok(err)
	o := list.Items[n%len(list.Items)]
	in := client.Namespace(o.GetNamespace())
	switch n % 3 {
	case 0:
		o.SetLabels(map[string]string{"n": strconv.Itoa(n)})
		_, err = in.Update(s.Context(), &o, metav1.UpdateOptions{})
	case 1:
		o.SetName(fmt.Sprintf("%.20s-%d", o.GetName(), n))
		o.SetResourceVersion("")
		o.SetUID("")
		_, err = in.Create(s.Context(), &o, metav1.CreateOptions{})
	default: // under the same name there may be another object then, in another part
		err = in.Delete(s.Context(), o.GetName(), metav1.DeleteOptions{})
		if n%2 == 0 && err == nil {
			o.SetResourceVersion("")
			o.SetUID("")
			_, err = in.Create(s.Context(), &o, metav1.CreateOptions{})
		}
	}
	s.ok(err)
}

// TestSharedPages reads lists page by page while objects change, each page from another server. Together they are what the cluster
// had at the version of the list.
func TestSharedPages(t *testing.T) {
	for _, key := range bothKeys {
		t.Run(string(key), func(t *testing.T) {
			s := shared(t, key, 3)
			for round, query := range []string{"", "resourceVersion=0", "labelSelector=!n", "resourceVersion=1&resourceVersionMatch=NotOlderThan"} {
				for limit := 1; limit < 8; limit += 2 {
					s.change()
					params, _ := url.ParseQuery(query)
					if params.Get("resourceVersion") != "0" { // with which there are no pages
						params.Set("limit", strconv.Itoa(limit))
					}
					var got []any
					version := ""
					for page := 0; page == 0 || params.Get("continue") != ""; page++ {
						list := s.list(s.servers[(round+page)%3], params)
						if page > 0 && list.GetResourceVersion() != version {
							t.Errorf("the page %d is of %s, that before of %s", page, list.GetResourceVersion(), version)
						}
						version = list.GetResourceVersion()
						got = append(got, list.Object["items"].([]any)...)
						params.Set("continue", list.GetContinue())
						params.Del("resourceVersion")
						params.Del("resourceVersionMatch")
						if page < 3 {
							s.change()
						}
					}
					exact := url.Values{"resourceVersion": {version}, "resourceVersionMatch": {"Exact"}, "labelSelector": params["labelSelector"]}
					if diff := cmp.Diff(s.list(s.cluster, exact).Object["items"], any(got)); diff != "" {
						t.Errorf("%s by %d at %s (-cluster +servers):\n%s", query, limit, version, diff)
					}
				}
			}
		})
	}
}

// list lists workloads.
func (s *sharedScene) list(h http.Handler, params url.Values) *unstructured.Unstructured {
	s.Helper()
	answer := ask(s, h, allWorkloads+"?"+params.Encode())
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(answer.Body.Bytes(), &u.Object); err != nil || answer.Code != http.StatusOK {
		s.Fatalf("%v: %d %s", params, answer.Code, answer.Body)
	}
	return u
}

// TestSharedListIsFresh lists right after each change.
func TestSharedListIsFresh(t *testing.T) {
	s := shared(t, dynamicinformer.ShardByUID, 3)
	for n := range 12 {
		s.change()
		want := s.list(s.cluster, nil)
		got := s.list(s.servers[n%3], nil)
		if diff := cmp.Diff(want.Object["items"], got.Object["items"]); diff != "" {
			t.Fatalf("after %d changes (-want +got):\n%s", n+1, diff)
		}
	}
}

// TestServerAway takes one server away: what it may have something of is refused, and nothing is answered in part.
func TestServerAway(t *testing.T) {
	for _, key := range bothKeys {
		t.Run(string(key), func(t *testing.T) {
			s := shared(t, key, 3)
			const gone = 1
			theirs := dynamicinformer.SplitHashSpace(3)[gone]
			page := s.list(s.servers[0], url.Values{"limit": {"1"}})
			paths := []string{
				allWorkloads, allWorkloads + "?resourceVersion=0", allWorkloads + "?limit=1", allWorkloads + "?limit=1&continue=" + page.GetContinue(),
				allWorkloads + "?shardSelector=" + url.QueryEscape(s.servers[gone].options.Sharding.ownSelector()),
				allWorkloads + "?watch=1&timeoutSeconds=1&shardSelector=" + url.QueryEscape(s.servers[gone].options.Sharding.ownSelector()),
			}
			for _, namespace := range []string{"payments", "media", "none", "x1", "x2", "x3"} {
				if key == dynamicinformer.ShardByUID || theirs.Contains(dynamicinformer.ShardHash(namespace)) {
					paths = append(paths, "/apis/"+demo+"/v1/namespaces/"+namespace+"/workloads", "/apis/"+demo+"/v1/namespaces/"+namespace+"/workloads/api?resourceVersion=0")
				}
			}
			for _, away := range []bool{true, false} {
				s.away[gone].Store(away)
				for _, path := range paths {
					got := ask(t, s.servers[0], path)
					refused := got.Code == http.StatusServiceUnavailable && got.Header().Get("Retry-After") == "1" && strings.Contains(got.Body.String(), "it is away")
					if refused != away {
						t.Errorf("with the server away %v: %s: %d %s", away, path, got.Code, got.Body)
					}
				}
			}
		})
	}
}

// TestOtherNumberOfServers has one server believe in another number of servers than the others.
func TestOtherNumberOfServers(t *testing.T) {
	for _, believed := range []int{2, 4} {
		t.Run(fmt.Sprint(believed), func(t *testing.T) {
			s := shared(t, dynamicinformer.ShardByUID, 3, func(i int, sharding *Sharding) {
				if i == 0 {
					sharding.Parts = dynamicinformer.SplitHashSpace(believed)
				}
			})
			for _, server := range s.servers[:2] {
				for _, path := range []string{allWorkloads, allWorkloads + "?resourceVersion=0", inPayments + "/api?resourceVersion=0"} {
					if got := ask(t, server, path); got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
						// A server with more than what it is asked for answers, and so does one that is asked for all it has.
						if want := ask(t, s.cluster, path); cmp.Diff(content(t, want.Body.String()), content(t, got.Body.String())) != "" {
							t.Errorf("%s: %d %s", path, got.Code, got.Body)
						}
					}
				}
			}
			if got := ask(t, s.servers[0], allWorkloads); got.Code != http.StatusServiceUnavailable {
				t.Errorf("the one of another number: %d %s", got.Code, got.Body)
			}
		})
	}
}

// TestOtherColumns has a server answer with other columns than the others, as one does that is first, or last, to hear of a new
// definition: cells of the one do not go under the columns of the other.
func TestOtherColumns(t *testing.T) {
	s := shared(t, dynamicinformer.ShardByUID, 2, func(_ int, sharding *Sharding) {
		ask := sharding.Ask
		sharding.Ask = func(part int, r *http.Request) (*http.Response, error) {
			answer, err := ask(part, r)
			if err == nil {
				text, _ := io.ReadAll(answer.Body)
				answer.Body = io.NopCloser(bytes.NewReader(bytes.Replace(text, []byte(`{"name":"Tier"`), []byte(`{"name":"Level"`), 1)))
			}
			return answer, err
		}
	})
	for _, query := range []string{"", "?limit=3"} {
		got := ask(t, s.servers[0], allWorkloads+query, "Accept", asTable)
		if got.Code != http.StatusServiceUnavailable || got.Header().Get("Retry-After") == "" {
			t.Errorf("%q: %d %s", query, got.Code, got.Body)
		}
		if got := ask(t, s.servers[0], allWorkloads+query); got.Code != http.StatusOK {
			t.Errorf("%q as objects: %d %s", query, got.Code, got.Body)
		}
	}
}

// TestSharedTokens continues lists by tokens of all kinds.
func TestSharedTokens(t *testing.T) {
	s := shared(t, dynamicinformer.ShardByUID, 3)
	for range 4 {
		s.change()
	}
	version, err := strconv.ParseInt(s.list(s.servers[0], nil).GetResourceVersion(), 10, 64)
	s.ok(err)
	for reason, token := range map[string]string{
		"in order": readapi.NewContinueToken(version, "", "payments/a"), "of a list that is forgotten": readapi.NewContinueToken(-1, "", "payments/a"),
		"after the last": readapi.NewContinueToken(version, "", "zz/zz"), "of the future": readapi.NewContinueToken(version+1000, "", "payments/a"),
		"of no version": readapi.NewContinueToken(0, "", "payments/a"), "with dots": readapi.NewContinueToken(version, "", "../a"), "of nothing": "e30", "no token": "%25",
		"of another form": "eyJ2IjoidjIiLCJydiI6MSwic3RhcnQiOiJhIn0",
	} {
		for _, query := range []string{"?continue=", "?limit=2&continue=", "?resourceVersion=0&continue=", "?resourceVersion=1&continue="} {
			path := allWorkloads + query + token
			want, got := ask(t, s.cluster, path), ask(t, s.servers[1], path)
			if diff := cmp.Diff(content(t, want.Body.String()), content(t, got.Body.String())); diff != "" || got.Code != want.Code {
				t.Errorf("%s: %s: %d, want %d (-want +got):\n%s", reason, query, got.Code, want.Code, diff)
			}
		}
	}
	got := ask(t, s.servers[1], allWorkloads+"?continue="+readapi.NewContinueToken(1, "", "payments/a"))
	var status metav1.Status
	if err := json.Unmarshal(got.Body.Bytes(), &status); err != nil || got.Code != http.StatusGone || status.Continue == "" {
		t.Fatalf("of a forgotten version: %d %s", got.Code, got.Body)
	}
	if got := ask(t, s.servers[2], allWorkloads+"?continue="+status.Continue); got.Code != http.StatusOK {
		t.Errorf("with the token of that: %d %s", got.Code, got.Body)
	}
}

// deadlines records those of a writer.
type deadlines struct {
	http.ResponseWriter
	at []time.Time
}

func (d *deadlines) SetWriteDeadline(at time.Time) error {
	d.at = append(d.at, at)
	return nil
}

// TestPartsArePatient: a part waits longer for its turn than a client may take for a chunk.
func TestPartsArePatient(t *testing.T) {
	var recorded deadlines
	controller, now := http.NewResponseController(patientWriter{&recorded}), time.Now()
	for _, at := range []time.Time{now.Add(time.Second), now.Add(time.Hour), {}} {
		if err := controller.SetWriteDeadline(at); err != nil {
			t.Fatal(err)
		}
	}
	if got := recorded.at; got[0].Before(now.Add(partPatience)) || !got[1].Equal(now.Add(time.Hour)) || !got[2].IsZero() {
		t.Errorf("the deadlines are %v", got)
	}
}

// TestServerThatHangs: one that takes a request and says nothing is not waited for without end.
func TestServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{options: Options{FreshTimeout: time.Second, Sharding: &Sharding{Ask: func(_ int, r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}}}}
		if _, err := s.send(1, httptest.NewRequestWithContext(t.Context(), http.MethodGet, allWorkloads, nil)); !errors.Is(err, errLate) {
			t.Errorf("the error is %v", err)
		}
	})
}
