package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

func withUser(ctx context.Context, name string) context.Context {
	return apirequest.WithUser(ctx, &user.DefaultInfo{Name: name})
}

// TestSlicesAreShared verifies that time slices alternate between a user with many requests and users with
// few.
func TestSlicesAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheduler := newFairScheduler()
		scheduler.totalSlots, scheduler.slotsPerUser = 2, 2
		var ends []func()
		for range 2 {
			end, err := scheduler.Begin(withUser(t.Context(), "first"))
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		started := make(chan string)
		next := make(chan struct{})
		for _, name := range []string{"a", "a", "a", "a", "b", "b", "c"} {
			go func() { // ends with next
				end, err := scheduler.Begin(withUser(context.Background(), name))
				if err != nil {
					t.Error(err)
				}
				started <- name
				<-next
				end()
			}()
			synctest.Wait() // requests queue in this order
		}
		ends[0]()
		var order []string
		for range 7 {
			order = append(order, <-started)
			next <- struct{}{}
			synctest.Wait()
		}
		if want := []string{"a", "b", "c", "a", "b", "a", "a"}; !slices.Equal(order, want) {
			t.Errorf("order of time slices: %v, want %v", order, want)
		}
		ends[1]()
		if len(scheduler.mu.users) > 0 || scheduler.mu.running > 0 || len(scheduler.mu.waiting) > 0 {
			t.Errorf("users with time slices remain: %+v, want none", scheduler.mu.users)
		}
	})
}

// TestHugeSelectors verifies that if a user has slotsPerUser time slices, the user's other requests wait.
// Requests of other users are answered meanwhile.
func TestHugeSelectors(t *testing.T) {
	d := startDaemon(t, newAPIServer(t), newConfig("workloads.demo.crdcache.dev"))
	d.awaitReady()
	scheduler := d.server.cache.scheduler
	var ends []func()
	for range scheduler.slotsPerUser {
		end, err := scheduler.Begin(withUser(t.Context(), "greedy"))
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	const list = "/apis/demo.crdcache.dev/v1/workloads"
	var excluded []string
	for n := range 1000 {
		excluded = append(excluded, fmt.Sprintf("x%d!=a", n))
	}
	paths := []string{
		list + "?resourceVersion=0", list + "?watch=true&timeoutSeconds=1",
		"/query" + list + "?count=true&scan=true",
	}
	answers := make(chan response)
	for n, path := range paths {
		go func() { // ends when the time slices end
			answers <- d.request("greedy", http.MethodGet, path+"&labelSelector="+strings.Join(excluded, ","), "")
		}()
		for waiting := 0; waiting <= n; _, waiting = scheduler.countSlices("greedy") {
			select {
			case early := <-answers:
				t.Fatalf("%s = %d without waiting", path, early.code)
			default:
			}
			d.request("", http.MethodGet, "/readyz", "") // limits the polling rate
		}
	}
	for _, path := range paths {
		if got := d.request("modest", http.MethodGet, path, ""); got.code != http.StatusOK {
			t.Errorf("%s of another user = %d %s, want 200", path, got.code, got.body)
		}
	}
	if running, waiting := scheduler.countSlices("greedy"); running != scheduler.slotsPerUser ||
		waiting != len(paths) {
		t.Errorf("%d running and %d waiting requests, want slotsPerUser and all others", running, waiting)
	}
	for _, end := range ends {
		end()
	}
	for range paths {
		if got := <-answers; got.code != http.StatusOK {
			t.Errorf("response after the wait = %d %s, want 200", got.code, got.body)
		}
	}
}

// TestLongSelectorsAreNotReviewed verifies that long selectors are not part of access reviews, which keeps
// these small.
func TestLongSelectorsAreNotReviewed(t *testing.T) {
	for name, tt := range map[string]struct {
		selector string
		want     string
	}{
		"short": {"a=b", "a=b"},
		"long":  {strings.Repeat("a", maxReviewedSelectorLength) + "=b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := "/api/v1/pods?labelSelector=" + tt.selector + "&fieldSelector=" + tt.selector
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			if err != nil {
				t.Fatal(err)
			}
			info, err := resolver.NewRequestInfo(r)
			if err != nil || info.LabelSelector != tt.want || info.FieldSelector != tt.want {
				t.Errorf("the authorized selectors are %q and %q, %v", info.LabelSelector, info.FieldSelector,
					err)
			}
		})
	}
}

// countSlices returns the numbers of running and waiting time slices of a user.
func (f *fairScheduler) countSlices(user string) (running, waiting int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u := f.mu.users[user]; u != nil {
		return u.running, len(u.queue)
	}
	return 0, 0
}
