package history_test

import (
	"fmt"
	"strings"
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// incarnationChecker is a listener that checks the order of its notifications for permanent informers. The
// end of one temporary informer and the start of the next are not ordered.
type incarnationChecker struct {
	name string

	mu struct {
		sync.Mutex
		informers  map[string]*informerState // by resource and options
		violations []string
	}
}

type informerState struct {
	number          int
	running, synced bool
}

func newIncarnationChecker(name string) *incarnationChecker {
	g := &incarnationChecker{name: name}
	g.mu.informers = map[string]*informerState{}
	return g
}

func (g *incarnationChecker) listener() status.Listener {
	return status.Listener{
		IncarnationStarted: func(now status.Incarnation) {
			g.check(now, "starts", func(c *informerState) bool {
				ok := !c.running && now.Number == c.number+1
				*c = informerState{number: now.Number, running: true}
				return ok
			})
		},
		IncarnationSynced: func(now status.Incarnation) {
			g.check(now, "is synced", func(c *informerState) bool {
				ok := c.running && !c.synced && now.Number == c.number
				c.synced = true
				return ok
			})
		},
		IncarnationEnded: func(now status.Incarnation, _ status.Reason) {
			g.check(now, "ends", func(c *informerState) bool {
				ok := c.running && now.Number == c.number
				c.running = false
				return ok
			})
		},
	}
}

// check records a notification that contradicts the earlier ones.
func (g *incarnationChecker) check(now status.Incarnation, event string, valid func(*informerState) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if strings.Contains(now.Options, excludedNamespace) {
		return
	}
	key := now.GVR.Resource + "|" + now.Options
	c := g.mu.informers[key]
	if c == nil {
		c = &informerState{}
		g.mu.informers[key] = c
	}
	before := *c
	if !valid(c) {
		g.mu.violations = append(g.mu.violations, fmt.Sprintf("%s: incarnation %d of %s %s after %+v", g.name,
			now.Number, key, event, before))
	}
}

// checkStatus compares the notifications of an informer with its status.
func (g *incarnationChecker) checkStatus(status status.Status) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	want := informerState{number: status.Incarnation, running: true, synced: true}
	if c := g.mu.informers[status.GVR.Resource+"|"+status.Options]; c == nil || *c != want {
		return fmt.Errorf("the listener to %s received %+v, want %+v", g.name, c, want)
	}
	return nil
}

// takeViolations returns the contradictions, each once.
func (g *incarnationChecker) takeViolations() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	violations := g.mu.violations
	g.mu.violations = nil
	return violations
}

// subscriber is a witness of an informer.
type subscriber struct {
	*harness.Witness
	follower *follower
	handle   cache.ResourceEventHandlerRegistration
	// late marks a subscriber that joined during the history.
	late bool
}

// check fails the test for inconsistent events and for objects that were never written. It returns the number
// of events.
func (s *subscriber) check(t *fixture) int {
	t.Helper()
	for _, line := range s.Violations() {
		t.Error(line)
	}
	for uid, value := range s.LastStates() {
		if o := s.follower.kind.byUID[uid]; o == nil || value > o.value {
			t.Errorf("%s received the value %d of %s, which was never written: %+v", s.Name(), value, uid, o)
		}
	}
	return s.Counts().Events
}
