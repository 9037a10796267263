package history_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// stepsPerRound is the number of the writer's steps in a round.
const stepsPerRound = 300

func TestHistory(t *testing.T) {
	firstSeed := *seed
	if firstSeed == 0 {
		firstSeed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	w := newFixture(t)
	until := time.Now().Add(*duration)
	rounds := uint64(0)
	for ; rounds == 0 || time.Now().Before(until); rounds++ {
		t.Logf("round %d has the seed %d", rounds+1, firstSeed+rounds)
		w.round(rand.New(rand.NewPCG(firstSeed+rounds, 0)))
		if t.Failed() {
			t.Fatalf("run this round again: go test ./history -args -seed=%d -duration=0s", firstSeed+rounds)
		}
	}
	w.endProcess(w.process, false)
	t.Logf("%d rounds; %d events were delivered; %d restarts of API servers, %d compactions, %d definitions created again",
		rounds, w.countDelivered(),
		w.restarted, w.compacted, w.recreated+w.other.recreated)
	t.Log(w.process.counts)
}

func (w *fixture) round(r *rand.Rand) {
	w.Helper()
	actions := map[int][]func(){}
	schedule := func(from, steps int, action func()) int {
		step := from + r.IntN(steps)
		actions[step] = append(actions[step], action)
		return step
	}
	victim := w.kinds[r.IntN(len(w.kinds))]
	uninstalled := schedule(0, stepsPerRound/2, func() { w.uninstall(victim) })
	schedule(uninstalled, stepsPerRound/2, func() { w.install(victim) })
	schedule(0, stepsPerRound, func() {
		harness.RestartAPIServer(w)
		w.restarted++
	})
	if r.IntN(3) == 0 {
		faults := w.randomFaults(r)
		schedule(0, stepsPerRound, func() {
			harness.Compact(w)
			w.compacted++
			faults.ExpireWatches()
		})
	}
	w.scheduleOtherDisruptions(r, schedule)
	w.scheduleRestarts(r, schedule)
	for step := range stepsPerRound {
		if len(actions[step]) > 0 {
			w.Logf("step %d at %s: %d disruptions", step, time.Now().Format("05.000"), len(actions[step]))
		}
		for _, happen := range actions[step] {
			happen()
		}
		w.step(r)
		if step%4 == 0 {
			w.inspect(w.process, false)
		}
	}
	w.awaitAgreement()
}

// scheduleOtherDisruptions schedules disruptions of the other cluster at random steps of a round.
func (w *fixture) scheduleOtherDisruptions(r *rand.Rand, schedule func(from, steps int, action func()) int) {
	if r.IntN(2) == 0 {
		victim := w.other.kinds[r.IntN(len(w.other.kinds))]
		uninstalled := schedule(0, stepsPerRound/2, func() { w.other.uninstall(victim) })
		schedule(uninstalled, stepsPerRound/2, func() { w.other.install(victim) })
	}
	if r.IntN(4) == 0 {
		schedule(0, stepsPerRound, func() {
			w.secondCluster.Compact(w)
			w.secondCluster.RestartAPIServer(w)
			w.compacted++
			w.restarted++
		})
	}
}

// step makes one small change.
func (w *fixture) step(r *rand.Rand) {
	w.Helper()
	switch n := r.IntN(100); {
	case n < 65:
		w.write(r)
	case n < 87:
		w.other.write(r)
	case n < 89:
		w.randomFaults(r).EndWatches()
	case n < 90:
		w.randomFaults(r).BreakWatches()
	case n < 91:
		w.randomFaults(r).ExpireWatches()
	case n < 94:
		w.randomSubscriber(r).ToggleBlocking()
	case n < 96:
		w.toggleHandler(w.process, r.IntN(1000))
	case n < 98:
		w.subscribe(w.randomFollower(r), r.IntN(2) == 0)
	case n < 99:
		if r.IntN(2) == 0 {
			w.unsubscribe(w.randomSubscriber(r))
		} else {
			w.releaseTemporary(w.randomFollower(r))
		}
	default:
		w.acquireTemporary(r.IntN(len(w.factories)), w.kinds[r.IntN(len(w.kinds))])
	}
}

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

// awaitAgreement unblocks all handlers, waits until all informers agree with the server, and checks the
// events of the handlers.
func (w *fixture) awaitAgreement() {
	w.Helper()
	for _, s := range w.subscribers {
		s.Unblock()
	}
	for _, f := range w.followers {
		harness.Eventually(w, func(ctx context.Context) error { return w.compare(ctx, f) })
		if f.handle == nil {
			harness.Eventually(w,
				func(context.Context) error { return f.incarnations.checkStatus(f.Status()) })
		}
	}
	for _, s := range w.subscribers {
		harness.Eventually(w, func(context.Context) error {
			if diff := cmp.Diff(s.follower.kind.expected(), s.LiveObjects()); diff != "" {
				return fmt.Errorf("%s (-written +received):\n%s", s.Name(), diff)
			}
			return nil
		})
		s.check(w)
	}
	for _, g := range w.incarnations {
		for _, line := range g.takeViolations() {
			w.Error(line)
		}
	}
	w.awaitProcessAgreement(w.process)
}

// compare compares the cache with the server's list, and the list with the written objects.
func (w *fixture) compare(ctx context.Context, f *follower) error {
	current := f.Status()
	if current.State != status.Synced || !f.HasSynced() {
		return fmt.Errorf("%s is synced: %v, with the status %+v, want Synced", f.name, f.HasSynced(), current)
	}
	list, err := w.listAndCompare(ctx, f.kind)
	if err != nil {
		return err
	}
	server, cached := map[string]any{}, map[string]any{}
	for _, o := range list {
		server[o.GetNamespace()+"/"+o.GetName()] = o.Object
	}
	for _, o := range f.GetStore().List() {
		u := o.(*unstructured.Unstructured)
		cached[u.GetNamespace()+"/"+u.GetName()] = u.Object
	}
	if diff := cmp.Diff(server, cached); diff != "" {
		return fmt.Errorf("%s (-server +cache):\n%s", f.name, diff)
	}
	return w.checkIncarnation(ctx, f.kind, f.name, current.UID)
}

// listAndCompare returns the cluster's objects of a type after comparing them with the written ones.
func (c *cluster) listAndCompare(ctx context.Context, k *kind) ([]*unstructured.Unstructured, error) {
	list, err := c.admin.Resource(k.gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	objects, listed := []*unstructured.Unstructured{}, map[string]harness.WitnessedObject{}
	for n := range list.Items {
		o := &list.Items[n]
		objects = append(objects, o)
		value, _, _ := unstructured.NestedInt64(o.Object, "spec", "value")
		listed[o.GetNamespace()+"/"+o.GetName()] = harness.WitnessedObject{UID: o.GetUID(), Value: value}
	}
	if diff := cmp.Diff(k.expected(), listed); diff != "" {
		return nil, fmt.Errorf("%s on the server (-written +listed):\n%s", k.name, diff)
	}
	return objects, nil
}

// checkIncarnation returns an error unless an informer follows the current definition.
func (c *cluster) checkIncarnation(ctx context.Context, k *kind, informer string, uid types.UID) error {
	definition, err := c.admin.Resource(crd.GVR).Get(ctx, k.definition.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if uid != definition.GetUID() {
		return fmt.Errorf("%s follows the definition %s, the server has %s", informer, uid,
			definition.GetUID())
	}
	return nil
}

// expected returns the existing objects of a type.
func (k *kind) expected() map[string]harness.WitnessedObject {
	all := map[string]harness.WitnessedObject{}
	for key, o := range k.live {
		all[key] = harness.WitnessedObject{UID: o.uid, Value: o.value}
	}
	return all
}
