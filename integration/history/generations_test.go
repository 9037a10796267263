package history_test

import (
	"fmt"
	"strings"
	"sync"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// generations is a listener that checks the order of its notifications for permanent informers. The end of
// one visitor's informer and the start of the next are not ordered.
type generations struct {
	name string

	mu struct {
		sync.Mutex
		informers map[string]*course // by resource and view
		nonsense  []string
	}
}

// course is the state of an informer.
type course struct {
	number          int
	running, synced bool
}

func newGenerations(name string) *generations {
	g := &generations{name: name}
	g.mu.informers = map[string]*course{}
	return g
}

func (g *generations) listener() status.Listener {
	return status.Listener{
		GenerationStarted: func(now status.Generation) {
			g.check(now, "starts", func(c *course) bool {
				ok := !c.running && now.Number == c.number+1
				*c = course{number: now.Number, running: true}
				return ok
			})
		},
		GenerationSynced: func(now status.Generation) {
			g.check(now, "is synced", func(c *course) bool {
				ok := c.running && !c.synced && now.Number == c.number
				c.synced = true
				return ok
			})
		},
		GenerationEnded: func(now status.Generation, _ status.Reason) {
			g.check(now, "ends", func(c *course) bool {
				ok := c.running && now.Number == c.number
				c.running = false
				return ok
			})
		},
	}
}

// check records a notification that contradicts the earlier ones.
func (g *generations) check(now status.Generation, what string, sensible func(*course) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if strings.Contains(now.View, nowhere) {
		return
	}
	key := now.GVR.Resource + "|" + now.View
	c := g.mu.informers[key]
	if c == nil {
		c = &course{}
		g.mu.informers[key] = c
	}
	before := *c
	if !sensible(c) {
		g.mu.nonsense = append(g.mu.nonsense, fmt.Sprintf("%s: generation %d of %s %s after %+v", g.name,
			now.Number, key, what, before))
	}
}

// agree compares the notifications of an informer with its status.
func (g *generations) agree(status status.Status) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	want := course{number: status.Generation, running: true, synced: true}
	if c := g.mu.informers[status.GVR.Resource+"|"+status.View]; c == nil || *c != want {
		return fmt.Errorf("the listener to %s was told of %+v, want %+v", g.name, c, want)
	}
	return nil
}

// takeNonsense returns the contradictions, each once.
func (g *generations) takeNonsense() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	nonsense := g.mu.nonsense
	g.mu.nonsense = nil
	return nonsense
}
