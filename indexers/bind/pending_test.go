package bind_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/test/testcluster"
)

// TestPending verifies that Pending returns a change whose new informer is forbidden, with its time and
// reason. The previous target answers until access is granted.
func TestPending(t *testing.T) {
	var injector *testcluster.Injector
	s := newFixtureWithMiddleware(t, func(server http.Handler) http.Handler {
		injector = testcluster.NewInjector(server)
		return injector
	})
	binding := s.follow(parse(t, widgetsByColor))
	s.eventually("bound", func() bool { return queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") })
	if got := binding.Pending(); len(got) > 0 {
		t.Errorf("Pending before any Apply = %v, want none", got)
	}
	injector.Add(testcluster.Fault{Match: testcluster.Match{Path: "/apis/example.com/v1/widgets"},
		Effect: testcluster.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "not for you")})
	before := time.Now()
	next := parse(t, widgetsDecoded)
	if err := binding.Apply(next); err != nil {
		t.Fatal(err)
	}
	var pending []bind.Pending
	s.eventually("the change is pending because of Forbidden", func() bool {
		pending = binding.Pending()
		return len(pending) == 1 && pending[0].Status.Reason == status.ReasonForbidden
	})
	p := pending[0]
	if p.Resource != next.Resources[0] || p.GVR.Resource != "widgets" || p.Since.Before(before) ||
		p.Since.After(time.Now()) {
		t.Errorf("Pending = %+v, want the new widgets resource since the time of Apply", p)
	}
	if text := p.String(); !strings.Contains(text, `resource "widgets": the config applied at 2`) ||
		!strings.Contains(text, "Forbidden") {
		t.Errorf("Pending.String() = %q, want the resource, the time of the config and the reason Forbidden",
			text)
	}
	target, err := binding.Target("widgets")
	if err != nil || binding.Config() != next || target.Resource == next.Resources[0] ||
		!queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") {
		t.Errorf("the previous target does not answer while the change is pending: %v", err)
	}
	injector.Clear()
	s.eventually("the change takes effect", func() bool {
		for _, informer := range s.factory.Informers() {
			informer.Retry()
		}
		target, err := binding.Target("widgets")
		return err == nil && target.Resource == next.Resources[0] && len(binding.Pending()) == 0
	})
}

// TestQuerierFollowsItsResource verifies that a querier answers from the replacement of its target, and that
// no query fails during the replacement.
func TestQuerierFollowsItsResource(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, widgetsByColor))
	s.eventually("bound", func() bool { return queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") })
	querier, err := binding.Querier("widgets")
	if err != nil {
		t.Fatal(err)
	}
	redKeys := func() ([]string, error) {
		return querier.Keys(s.ctx, query.Eq("color", "red"), query.Options{})
	}
	for round, text := range []string{widgetsDecoded, widgetsByColor, strings.Replace(widgetsByColor, "[{",
		"[{name: size, path: .spec.size}, {", 1)} {
		if err := binding.Apply(parse(t, text)); err != nil {
			t.Fatal(err)
		}
		for len(binding.Pending()) > 0 {
			if keys, err := redKeys(); err != nil || !slices.Equal(keys, []string{"home/chair",
				"home/lamp"}) {
				t.Fatalf("round %d: keys of red widgets = %v, %v; want chair and lamp", round, keys, err)
			}
		}
		name := fmt.Sprintf("new-%d", round)
		apply(s.cluster, widget(name, "red", round))
		s.eventually("the querier returns "+name, func() bool {
			keys, err := redKeys()
			return err == nil && slices.Contains(keys, "home/"+name)
		})
		s.delete(widgetsResource, "home", name)
		s.eventually("the querier no longer returns "+name, func() bool {
			keys, err := redKeys()
			return err == nil && len(keys) == 2
		})
	}
	if err := binding.Apply(parse(t, widgetsBySize)); err != nil { // its index color has the names
		t.Fatal(err)
	}
	if keys, err := redKeys(); err != nil || len(keys) > 0 {
		t.Errorf("keys of red after color became an index of names = %v, %v; want none", keys, err)
	}
}

// TestReplacementIsRecent verifies that the previous informer answers until its replacement, which an API
// server that lags has listed, shows the same changes.
func TestReplacementIsRecent(t *testing.T) {
	var injector *testcluster.Injector
	s := newFixtureWithMiddleware(t, func(server http.Handler) http.Handler {
		injector = testcluster.NewInjector(server)
		return injector
	})
	binding := s.follow(parse(t, widgetsByColor))
	s.eventually("bound", func() bool { return queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp") })
	old, compared, caughtUp := httptest.NewRecorder(), make(chan struct{}), make(chan struct{})
	s.cluster.ServeHTTP(old, httptest.NewRequest(http.MethodGet, "/apis/example.com/v1/widgets", nil))
	compare := sync.OnceFunc(func() { close(compared) })
	injector.Add(testcluster.Fault{Match: testcluster.Match{Resource: "widgets", Verbs: testcluster.Reads},
		Effect: func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			switch q := r.URL.Query(); {
			case q.Get("limit") == "1": // it asks for the server's version
				compare()
				next.ServeHTTP(w, r)
			case q.Get("sendInitialEvents") != "":
				w.WriteHeader(http.StatusUnprocessableEntity)
			case q.Get("watch") == "":
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(old.Body.Bytes())
			default:
				select {
				case <-caughtUp:
					next.ServeHTTP(w, r)
				case <-r.Context().Done():
				}
			}
		}})
	apply(s.cluster, widget("sofa", "red", 1))
	isCurrent := func() bool {
		return queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp", "home/sofa")
	}
	s.eventually("the sofa is cached", isCurrent)
	if err := binding.Apply(parse(t, widgetsDecoded)); err != nil {
		t.Fatal(err)
	}
	s.eventually("the versions are compared", func() bool {
		select {
		case <-compared:
			return true
		default:
			return len(binding.Pending()) == 0
		}
	})
	if !isCurrent() || len(binding.Pending()) == 0 {
		t.Error("an informer without the sofa has replaced one that had it")
	}
	close(caughtUp)
	s.eventually("the replacement answers", func() bool { return len(binding.Pending()) == 0 && isCurrent() })
}
