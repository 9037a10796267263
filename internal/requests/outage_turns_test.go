package requests

import (
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestSingleTypeBacksOff checks that a type backs off if its requests fail while the server responds to
// others.
func TestSingleTypeBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPacer(false, false, NewRetrySignal())
		requests, begun := 0, time.Now()
		for time.Since(begun) < 10*time.Minute {
			p.recordFailure(errRefused, 0)
			time.AfterFunc(100*time.Millisecond, p.outage.end) // a response to another type
			measurePause(t, p)
			requests++
		}
		if requests > 50 {
			t.Errorf("%d requests in ten minutes, want at most 50", requests)
		}
	})
}

// TestListsWithoutAnswer checks that lists without a response are aborted and reported, and that the type is
// listed when the server answers.
func TestListsWithoutAnswer(t *testing.T) {
	withVirtualClock(t, func(r *clientComparison) {
		r.addFault(apitest.Fault{Verb: "watch-list", Status: 400})
		r.addFault(apitest.Fault{Verb: "list"})
		r.startOurs(false)
		time.Sleep(listHeaderTimeout + time.Second)
		if failures := r.reports.failures(); !slices.Contains(failures, status.ReasonNoAnswer) {
			t.Errorf("after %v, reported the failures %q, want NoAnswer", listHeaderTimeout, failures)
		}
		r.server.Repair()
		if elapsed := r.awaitSync(gadgets); elapsed > 2*listHeaderTimeout {
			t.Errorf("synced after %v, want two header timeouts at most", elapsed)
		}
	})
}

// TestSilentWatchesEnd verifies that the server ends a watch at its timeout. A watch that is silent for
// longer is dead.
func TestSilentWatchesEnd(t *testing.T) {
	full := 5*time.Minute + silenceGrace
	for protocol, want := range map[int]time.Duration{1: silenceHTTP1, 2: full} {
		synctest.Test(t, func(t *testing.T) {
			body, server := io.Pipe()
			defer server.Close()
			silent := roundTrip(func(*http.Request) (*http.Response, error) {
				header := http.Header{"Content-Type": {"application/json"}}
				return &http.Response{StatusCode: 200, ProtoMajor: protocol, Header: header,
					Body: body}, nil
			})
			config := &rest.Config{Host: "http://example.com", QPS: -1}
			w := newInlineListWatch(t, config, &http.Client{Transport: silent}, packedObjects)
			seconds, begun := int64(300), time.Now()
			err := w.WatchInline(t.Context(), &metav1.ListOptions{ResourceVersion: "7",
				TimeoutSeconds: &seconds}, func(watch.Event) bool { return true })
			if err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took != want {
				t.Errorf("over HTTP/%d it ended after %v, want %v", protocol, took, want)
			}
		})
	}
}

// TestOutageTurns checks that all types together send at most two requests a second while the server cannot
// be reached. When one gets a response, all continue.
func TestOutageTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const types = 100
		shared := &sharedOutage{}
		var requests atomic.Int64
		var down atomic.Bool
		down.Store(true)
		var recovered sync.WaitGroup
		for range types {
			p := NewPacer(false, false, NewRetrySignal())
			p.outage = shared
			recovered.Go(func() { // ended by the end of the outage
				for p.awaitRound(t.Context()) == nil {
					requests.Add(1)
					if !down.Load() {
						p.record(requestOutcome{verb: VerbList})
						return
					}
					p.recordFailure(errRefused, 0)
				}
			})
		}
		time.Sleep(time.Minute)
		if n := requests.Load(); n > types+2*60+1 || n < types+60 {
			t.Errorf("%d requests of %d types in a minute, want at most two a second", n, types)
		}
		down.Store(false)
		begun := time.Now()
		recovered.Wait()
		if elapsed := time.Since(begun); elapsed > backoffs[stageConnection].longest {
			t.Errorf("all types recovered after %v, want the longest pause at most", elapsed)
		}
	})
}
