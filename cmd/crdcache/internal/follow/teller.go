package follow

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// patience is how long something may take before anything is said about it.
const patience = 2 * time.Second

// teller says on stderr how types are doing, where that is out of the ordinary: what is pending for long,
// what fails and recovers, what goes and comes. It is safe for concurrent use.
type teller struct {
	w io.Writer

	mu struct {
		sync.Mutex
		// begun is set when the types that were there in the beginning have been synced.
		begun bool
		// news are the types of which the end of a sync is to be said.
		news map[schema.GroupVersionResource]bool
		// waits are for what is said unless it passes.
		waits map[schema.GroupVersionResource]*time.Timer
		// failing counts the factories for which a condition does not hold, and reasons are why, the latest
		// of each; missed are those of which that was said.
		failing map[status.ConditionType]int
		reasons map[status.ConditionType]string
		missed  map[status.ConditionType]bool
		ended   bool
	}
}

func newTeller(w io.Writer) *teller {
	t := &teller{w: w}
	t.mu.news = map[schema.GroupVersionResource]bool{}
	t.mu.waits = map[schema.GroupVersionResource]*time.Timer{}
	t.mu.failing = map[status.ConditionType]int{}
	t.mu.reasons = map[status.ConditionType]string{}
	t.mu.missed = map[status.ConditionType]bool{}
	return t
}

// begin tells that what comes from now on is news.
func (t *teller) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.begun = true
	for of := range connection {
		t.connectionLocked(of)
	}
}

// end keeps the teller from saying anything more.
func (t *teller) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.ended = true
	for _, wait := range t.mu.waits {
		wait.Stop()
	}
}

// say writes a line.
func (t *teller) say(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sayLocked(format, args...)
}

func (t *teller) sayLocked(format string, args ...any) {
	if !t.mu.ended {
		fmt.Fprintf(t.w, format+"\n", args...)
	}
}

// unlessSoon says a line when patience is over, unless the returned func is called before.
func (t *teller) unlessSoon(format string, args ...any) (soon func()) {
	timer := time.AfterFunc(patience, func() { t.say(format, args...) })
	return func() { timer.Stop() }
}

// changed takes the news of the state of a type.
func (t *teller) changed(before, after status.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gvr := after.GVR
	if after.State == before.State && after.Reason == before.Reason {
		return
	}
	if wait := t.mu.waits[gvr]; wait != nil {
		wait.Stop()
		delete(t.mu.waits, gvr)
	}
	if before.State == "" && t.mu.begun {
		t.mu.news[gvr] = true
	}
	switch after.State {
	case status.Pending:
		// That a type has gone has been said, and what does not exist is not waited for here.
		if after.Reason != status.ReasonNotInstalled && after.Message != "" {
			t.mu.waits[gvr] = time.AfterFunc(patience, func() { t.say("%s", describe(after)) })
		}
	case status.Degraded, status.Gone:
		t.mu.news[gvr] = true
		t.sayLocked("%s", describe(after))
	case status.Synced:
		if t.mu.news[gvr] {
			t.sayLocked("%s", describe(after))
		}
		delete(t.mu.news, gvr)
	}
}

// connection is what is said of conditions that concern all types, which keep their states meanwhile.
var connection = map[status.ConditionType]struct{ lost, back string }{
	status.ConditionReachable: {"the API server does not answer, so that no change is shown",
		"the API server answers again"},
	status.ConditionAuthenticated: {
		"the API server does not accept the credentials any more, so that no change is shown",
		"the API server accepts the credentials again"},
}

// conditionChanged takes the news of a condition of a factory. In the beginning it is the errors that tell of
// it.
func (t *teller) conditionChanged(before, after status.Condition) {
	_, told := connection[after.Type]
	failed, fails := before.Status == metav1.ConditionFalse, after.Status == metav1.ConditionFalse
	if !told || failed == fails {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if fails {
		t.mu.failing[after.Type]++
		t.mu.reasons[after.Type] = print.Printable(after.Message)
	} else {
		t.mu.failing[after.Type]--
	}
	t.connectionLocked(after.Type)
}

// connectionLocked says that a condition does not hold, or does again, if that is news.
func (t *teller) connectionLocked(of status.ConditionType) {
	fails := t.mu.failing[of] > 0
	if !t.mu.begun || fails == t.mu.missed[of] {
		return
	}
	t.mu.missed[of] = fails
	if fails {
		t.sayLocked("warning: %s: %s", connection[of].lost, t.mu.reasons[of])
	} else {
		t.sayLocked("%s", connection[of].back)
	}
}

func describe(s status.Status) string {
	text := fmt.Sprintf("%s: %s", s.GVR.GroupResource(), s.State)
	if s.Message != "" {
		text += ": " + print.Printable(s.Message)
	}
	return text
}

// watchable finds the types that the server lists and refuses to watch. Their informers are as good as any
// other after the list, and go on asking; but a command that is there to show changes would show none. It is
// safe for concurrent use.
type watchable struct {
	// found gets a token when a type is found.
	found chan struct{}

	mu struct {
		sync.Mutex
		listed, watched map[schema.GroupVersionResource]bool
		// refused says of types that are listed and were never watched what the server said.
		refused map[schema.GroupVersionResource]error
	}
}

func newWatchable() *watchable {
	w := &watchable{found: make(chan struct{}, 1)}
	w.mu.listed, w.mu.watched = map[schema.GroupVersionResource]bool{}, map[schema.GroupVersionResource]bool{}
	w.mu.refused = map[schema.GroupVersionResource]error{}
	return w
}

// wrap notes the requests that a transport brings to an end.
func (w *watchable) wrap(client *http.Client) *http.Client {
	noting := *client
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	noting.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if err == nil && response.StatusCode == http.StatusOK {
			w.note(r)
		}
		return response, err
	})
	return &noting
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *watchable) note(r *http.Request) {
	gvr, ok := collection(r.URL.Path)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.URL.Query().Get("watch") != "" {
		w.mu.watched[gvr] = true
		delete(w.mu.refused, gvr)
	} else {
		w.mu.listed[gvr] = true
	}
}

// collection is the type whose collection, of all namespaces or one, a path names. What comes before /api or
// /apis is the server's own prefix.
func collection(path string) (gvr schema.GroupVersionResource, ok bool) {
	if before, core, found := strings.Cut(path, "/api/"); found && !strings.Contains(before, "/apis") {
		gvr.Version, path, ok = strings.Cut(core, "/")
	} else if _, named, found := strings.Cut(path, "/apis/"); found {
		gvr.Group, path, _ = strings.Cut(named, "/")
		gvr.Version, path, ok = strings.Cut(path, "/")
	}
	if inside, found := strings.CutPrefix(path, "namespaces/"); found {
		if _, rest, found := strings.Cut(inside, "/"); found {
			path = rest
		}
	}
	gvr.Resource = path
	return gvr, ok && path != "" && !strings.Contains(path, "/")
}

// changed looks at the news of the state of a type, and reports whether they are that it is not watched.
func (w *watchable) changed(after status.Status) bool {
	if after.State != status.Degraded ||
		after.Reason != status.ReasonForbidden && after.Reason != status.ReasonVerbUnsupported {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.mu.listed[after.GVR] || w.mu.watched[after.GVR] {
		return false
	}
	cause := after.LastError
	if cause == nil {
		cause = errors.New(after.Message)
	}
	w.mu.refused[after.GVR] = fmt.Errorf(
		"%s may be listed but not watched, so that no change would be shown (dump prints the objects): %w",
		after.GVR.GroupResource(), cause)
	select {
	case w.found <- struct{}{}:
	default:
	}
	return true
}

// err joins what is wrong with the types, if it is all of them.
func (w *watchable) err(types []schema.GroupVersionResource) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, gvr := range types {
		if w.mu.refused[gvr] == nil {
			return nil
		}
		errs = append(errs, w.mu.refused[gvr])
	}
	return errors.Join(errs...)
}
