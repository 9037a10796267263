package follow

import (
	"fmt"
	"io"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// patience is how long something may take before anything is said about it.
const patience = 2 * time.Second

// teller says on stderr how types are doing, where that is out of the ordinary: what is pending for long, what fails
// and recovers, what goes and comes. It is safe for concurrent use.
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
		// failing counts the factories for which a condition does not hold, and reasons are why, the latest of each;
		// missed are those of which that was said.
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
	status.ConditionReachable:     {"the API server does not answer, so that no change is shown", "the API server answers again"},
	status.ConditionAuthenticated: {"the API server does not accept the credentials any more, so that no change is shown", "the API server accepts the credentials again"},
}

// conditionChanged takes the news of a condition of a factory. In the beginning it is the errors that tell of it.
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
