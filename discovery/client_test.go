package discovery

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/rest"
)

func TestRequestsOfAName(t *testing.T) {
	tests := map[string]struct {
		name string
		want []string
	}{
		"a name with a group":                   {"certificates.cert-manager.io", []string{"/apis 200"}},
		"a full name":                           {"certificates.v1.cert-manager.io", []string{"/apis 200"}},
		"a wildcard in a group":                 {"*.cert-manager.io", []string{"/apis 200"}},
		"a plain name":                          {"certificates", []string{"/api 200", "/apis 200"}},
		"a version alone":                       {"pods.v1", []string{"/api 200", "/apis 200"}},
		"everything":                            {"*.*", []string{"/api 200", "/apis 200"}},
		"a name in a group that does not exist": {"nothing.cert-manager.io", []string{"/apis 200"}},
		"an invalid name":                       {"a/b/c", nil},
	}
	for reason, tt := range tests {
		t.Run(reason, func(t *testing.T) {
			server := newAPIServer(t, sampleGroups()...)
			client := server.client(t, Options{})
			_, _ = client.Resolve(t.Context(), tt.name)
			if diff := cmp.Diff(tt.want, server.takeRequests(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("cold (-want +got):\n%s", diff)
			}
			if len(tt.want) == 0 || reason == "a name in a group that does not exist" {
				return
			}
			_, _ = client.Resolve(t.Context(), tt.name)
			if got := server.takeRequests(); len(got) != 0 {
				t.Errorf("a repeated Resolve sent the requests %v, want none", got)
			}
		})
	}
}

func TestOneGroupFails(t *testing.T) {
	for _, form := range []string{"aggregated", "legacy"} {
		t.Run(form, func(t *testing.T) {
			server := newAPIServer(t, sampleGroups()...)
			server.mu.legacy = form == "legacy"
			client := server.client(t, Options{})
			catalog, err := client.Catalog(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			server.changeGroups(func(groups *[]group, fail map[string]int) {
				fail["/apis/cert-manager.io/v1"] = http.StatusServiceUnavailable // for legacy discovery
				cm := (*groups)[4]
				// for aggregated discovery
				cm.Versions = []groupVersion{{Name: "v1", Stale: true}, cm.Versions[1]}
				(*groups)[4] = cm
			})
			after, err := client.Refresh(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := after.FailedGroupVersions(); len(got) != 1 || got[0].GroupVersion.String() != "cert-manager.io/v1" {
				t.Errorf("FailedGroupVersions() = %v, want only cert-manager.io/v1", got)
			}
			want := catalog.Resources()
			for i, r := range want {
				want[i].Stale = r.GVR.Group == "cert-manager.io" && r.GVR.Version == "v1"
			}
			if diff := cmp.Diff(want, after.Resources()); diff != "" {
				t.Errorf("resources (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServerDown(t *testing.T) {
	server := newAPIServer(t, sampleGroups()...)
	client := server.client(t, Options{TTL: time.Nanosecond})
	if _, err := client.Catalog(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.changeGroups(func(_ *[]group, fail map[string]int) {
		fail["/apis"], fail["/api"] = http.StatusInternalServerError, http.StatusInternalServerError
	})
	catalog, err := client.Catalog(t.Context())
	if err != nil || catalog.RefreshErr() == nil {
		t.Errorf("catalog = %v, %v, want the last one with its RefreshErr", catalog, err)
	}
	if _, err := client.Resolve(t.Context(), "pods"); err != nil {
		t.Errorf("Resolve() of a known name without the server = %v", err)
	}
	_, err = client.Resolve(t.Context(), "nothing")
	var miss *NoMatchError
	if !errors.As(err, &miss) || miss.RefreshErr == nil {
		t.Errorf("Resolve: got the error %v, want a *NoMatchError with the error of the refresh", err)
	}
	if _, err := server.client(t, Options{}).Resolve(t.Context(), "pods"); err == nil ||
		errors.As(err, &miss) {
		t.Errorf("Resolve() of a new client without the server = %v, want an error other than NoMatch", err)
	}
}

func TestNoCoreGroup(t *testing.T) {
	server := newAPIServer(t, sampleGroups()...)
	server.changeGroups(func(_ *[]group, fail map[string]int) { fail["/api"] = http.StatusNotFound })
	if _, err := server.client(t, Options{}).Resolve(t.Context(), "deployments"); err != nil {
		t.Errorf("Resolve() with a server without /api = %v", err)
	}
}

// TestKnownTypesAreNeverLost verifies that answers without the types of the moment before leave them known: a
// proxy that does not find the core group, and a stale group with other types or none.
func TestKnownTypesAreNeverLost(t *testing.T) {
	for name, change := range map[string]func(groups *[]group, fail map[string]int){
		"no core group": func(_ *[]group, fail map[string]int) { fail["/api"] = http.StatusNotFound },
		"stale, and empty": func(groups *[]group, _ map[string]int) {
			(*groups)[4].Versions[0] = groupVersion{Name: "v1", Stale: true}
		},
		"stale, with other types": func(groups *[]group, _ map[string]int) {
			other := oneGroup("cert-manager.io", "others").Versions[0]
			other.Name, other.Stale = "v1", true
			(*groups)[4].Versions = append([]groupVersion{other}, (*groups)[4].Versions[1:]...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t, sampleGroups()...)
			client := server.client(t, Options{})
			before, err := client.Catalog(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			server.changeGroups(change)
			after, err := client.Refresh(t.Context())
			if err != nil {
				after, err = client.Catalog(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range before.Resources() {
				if _, exists := after.Lookup(r.GVR); !exists {
					t.Errorf("%s is lost", r.GVR)
				}
			}
		})
	}
}

func TestNewClientWithoutConfig(t *testing.T) {
	if _, err := NewClient(nil, Options{}); err == nil {
		t.Error("NewClient(nil) succeeded, want an error")
	}
	if _, err := NewClient(&rest.Config{Host: "http://%zz"}, Options{}); err == nil {
		t.Error("NewClient() with a host that is not a URL succeeded, want an error")
	}
}

// TestEqualDocumentsAreShared verifies that the clients of equal servers share the decoded documents, also
// after a refresh with a failed group version, which changes only the documents of its client.
func TestEqualDocumentsAreShared(t *testing.T) {
	catalog := func(c *Client) *Catalog {
		t.Helper()
		got, err := c.Refresh(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	servers := []*apiServer{newAPIServer(t, sampleGroups()...), newAPIServer(t, sampleGroups()...),
		newAPIServer(t, sampleGroups()[1:]...)}
	var clients []*Client
	var contents []*catalogContent
	for _, server := range servers {
		clients = append(clients, server.client(t, Options{}))
		contents = append(contents, catalog(clients[len(clients)-1]).catalogContent)
	}
	if contents[0] != contents[1] || contents[0] == contents[2] {
		t.Errorf("the contents are %p, want equal ones for the first two servers only", contents)
	}
	stale := sampleGroups()
	version := &stale[len(stale)-1].Versions[0]
	version.Resources, version.Stale = nil, true
	servers[0].changeGroups(func(groups *[]group, _ map[string]int) { *groups = stale })
	shared := newAPIServer(t, stale...).client(t, Options{})
	fresh := catalog(shared)
	before := len(fresh.Resources())
	if failed := catalog(clients[0]); len(failed.FailedGroupVersions()) == 0 ||
		len(failed.Resources()) != len(contents[0].resources) {
		t.Errorf("after a failure there are %d types and the failures %v, want the %d types of before",
			len(failed.Resources()), failed.FailedGroupVersions(), len(contents[0].resources))
	}
	if n := len(catalog(shared).Resources()); n != before {
		t.Errorf("another client of the document has %d types, want %d", n, before)
	}
}

// fetchRecorder has a fetch function that takes a fixed time and records when it was called.
type fetchRecorder struct {
	mu        sync.Mutex
	starts    []time.Time
	fetchTime time.Duration
	err       error
}

func (r *fetchRecorder) fetch(ctx context.Context, _ *cachedDocument) (*cachedDocument, error) {
	r.mu.Lock()
	r.starts = append(r.starts, time.Now())
	r.mu.Unlock()
	if err := sleep(ctx, r.fetchTime); err != nil {
		return nil, err
	}
	return &cachedDocument{documentGroups: &documentGroups{}}, r.err
}

func TestLastWaiterCancelsTheRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fetchRecorder{fetchTime: time.Hour}
		s := &documentCache{interval: time.Second, fetch: r.fetch}
		first, cancelFirst := context.WithCancel(t.Context())
		second, cancelSecond := context.WithCancel(t.Context())
		results := make(chan string, 2)
		wait := func(name string, ctx context.Context) {
			if _, err := s.fetchedSince(ctx, time.Time{}); errors.Is(err, context.Canceled) {
				results <- name
			}
		}
		go wait("first", first)   // ends with its context
		go wait("second", second) // ends with its context
		synctest.Wait()
		cancelFirst()
		if diff := cmp.Diff("first", <-results); diff != "" {
			t.Errorf("the caller whose context ended (-want +got):\n%s", diff)
		}
		synctest.Wait()
		if s.mu.inProgress == nil {
			t.Error("the round was cancelled while the second caller waits")
		}
		cancelSecond()
		<-results
		synctest.Wait()
		if s.mu.inProgress != nil {
			t.Error("the round continues although no caller waits")
		}
	})
}

// TestBurstOfMisses simulates 100 calls a second for ten seconds. Each call must get a document that was
// requested after it, with at most one request round a second.
func TestBurstOfMisses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &fetchRecorder{fetchTime: 100 * time.Millisecond}
		s := &documentCache{interval: time.Second, fetch: r.fetch}
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				called := time.Now()
				got, err := s.fetchedSince(t.Context(), called)
				if err != nil || got.started.Before(called) {
					t.Errorf("called at %v, got the document %v (%v), want one requested later", called, got,
						err)
				}
			})
			time.Sleep(10 * time.Millisecond)
		}
		wg.Wait()
		for i := 1; i < len(r.starts); i++ {
			if gap := r.starts[i].Sub(r.starts[i-1]); gap < time.Second {
				t.Errorf("round %d began %v after the round before, want at least 1s", i, gap)
			}
		}
		if len(r.starts) < 10 || len(r.starts) > 12 {
			t.Errorf("%d rounds in ten seconds, want 10 to 12", len(r.starts))
		}
	})
}
