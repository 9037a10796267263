package bind_test

import (
	"errors"
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
	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/test/testcluster"
)

const gadgetsAndWidgets = `  - name: widgets
    match: {group: example.com, resource: widgets}
    indexes: [{name: color, path: .spec.color}]
    references: [{name: gadget, to: {group: example.com, kind: Gadget, namePath: .spec.color}}]
  - name: gadgets
    match: {group: example.com, kind: Gadget}
`

// TestReferences verifies that the graph of a binding has the dangling references after changes of objects,
// types and configs.
func TestReferences(t *testing.T) {
	s := newFixture(t)
	binding := s.follow(parse(t, gadgetsAndWidgets))
	graph, err := binding.References()
	noError(t, err)
	if again, err := binding.References(); again != graph || err != nil {
		t.Errorf("the second References returned another graph, want the same one (%v)", err)
	}
	expectDangling := func(want ...string) {
		t.Helper()
		s.eventually(fmt.Sprint("exactly these references dangle: ", want), func() bool {
			got := []string{}
			for _, r := range graph.Dangling() {
				got = append(got, r.From.Key()+" "+r.To.String())
			}
			return slices.Equal(got, want)
		})
	}
	s.eventually("the graph has three references", func() bool { return graph.Stats().References == 3 })
	if graph.Stats().Dangling != 0 {
		t.Errorf("Dangling = %v, want none while the target type does not exist", graph.Dangling())
	}
	apply(s.cluster, definition("example.com", "gadgets", "Gadget"))
	expectDangling("home/chair Gadget.example.com home/red", "home/lamp Gadget.example.com home/red",
		"home/table Gadget.example.com home/blue")
	red := `{apiVersion: example.com/v1, kind: Gadget, metadata: {namespace: home, name: red}}`
	apply(s.cluster, red)
	expectDangling("home/table Gadget.example.com home/blue")

	querier, err := binding.Querier("widgets")
	noError(t, err)
	for text, want := range map[string]string{"dangling(gadget)": "home/table",
		"refersTo(gadgets.example.com, home/red) && color=red": "home/chair home/lamp"} {
		q, err := query.Parse(text)
		noError(t, err)
		if keys, err := querier.Keys(s.ctx, q, query.Options{}); err != nil ||
			strings.Join(keys, " ") != want {
			t.Errorf("keys of %s = %v, %v; want %s", text, keys, err, want)
		}
	}

	// the replacement of an informer sends no events
	var mu sync.Mutex
	events := 0
	subscription, err := graph.Subscribe(func(e references.Event) {
		mu.Lock()
		defer mu.Unlock()
		if !e.Initial {
			events++
		}
	})
	noError(t, err)
	if err := binding.Apply(parse(t, strings.ReplaceAll(gadgetsAndWidgets, "    match:",
		"    storage: {mode: Object}\n    match:"))); err != nil {
		t.Fatal(err)
	}
	s.eventually("the informer of gadgets is replaced", func() bool {
		target, err := binding.Target("gadgets")
		return err == nil && target.Resource.Storage.Mode == "Object" && graph.Stats().Informers == 2 &&
			graph.Stats().Synced == 2
	})
	mu.Lock()
	if events > 0 {
		t.Errorf("the replacement of an informer sent %d events, want none", events)
	}
	mu.Unlock()
	subscription.Stop()

	if err := binding.Apply(parse(t, strings.ReplaceAll(gadgetsAndWidgets, ".spec.color}}]",
		".metadata.name}}]"))); err != nil {
		t.Fatal(err)
	}
	expectDangling("home/chair Gadget.example.com home/chair", "home/lamp Gadget.example.com home/lamp",
		"home/table Gadget.example.com home/table")
	if err := binding.Apply(parse(t,
		gadgetsAndWidgets[strings.Index(gadgetsAndWidgets, "  - name: gadgets"):])); err != nil {
		t.Fatal(err)
	}
	expectDangling()
	binding.Close()
	if _, err := binding.References(); !errors.Is(err, bind.ErrClosed) {
		t.Errorf("References after Close: got the error %v, want ErrClosed", err)
	}
}

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
	noError(t, binding.Apply(next))
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
	noError(t, err)
	redKeys := func() ([]string, error) {
		return querier.Keys(s.ctx, query.Eq("color", "red"), query.Options{})
	}
	for round, text := range []string{widgetsDecoded, widgetsByColor, strings.Replace(widgetsByColor, "[{",
		"[{name: size, path: .spec.size}, {", 1)} {
		noError(t, binding.Apply(parse(t, text)))
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
	apply(s.cluster, widget("sofa", "red", 1))
	isCurrent := func() bool {
		return queryReturns(binding, "widgets", "color=red", "home/chair", "home/lamp", "home/sofa")
	}
	s.eventually("the sofa is cached", isCurrent)
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
	noError(t, binding.Apply(parse(t, widgetsDecoded)))
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
