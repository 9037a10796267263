package history_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/internal/informer/conformance"
)

// lateSubscribers is how many subscribers may join, over all types.
const lateSubscribers = 12

// world is everything that takes part in a history.
type world struct {
	*testing.T
	ctx         context.Context
	admin       dynamic.Interface
	namespaces  []string
	kinds       []*kind
	followers   []*follower
	subscribers []*subscriber
	// late are those of the subscribers that joined during the history; left is how many events those that
	// have left again were told.
	late, left int
}

// follower is an informer under test.
type follower struct {
	*dynamicinformer.Informer
	kind *kind
	// link is between all informers of a factory and the server.
	link *conformance.Faults
	name string
}

// newWorld installs the types and begins to follow them: in one factory over watch-lists, and in another over
// lists, of each namespace by itself.
func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), *duration+10*time.Minute) // t.Context ends before the cleanups
	t.Cleanup(cancel)
	admin, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, ctx: ctx, admin: admin, namespaces: []string{harness.Namespace(t), harness.Namespace(t)}}
	group := harness.Group(t)
	for _, name := range []string{"Widget", "Gadget", "Gizmo"} {
		k := newKind(group, name)
		w.kinds = append(w.kinds, k)
		t.Cleanup(func() { w.uninstall(k) })
		w.install(k)
	}
	types := w.runTracker()
	w.follow("watch-lists", conformance.NewFaults(nil), dynamicinformer.Options{Types: types})
	lists := conformance.NewFaults(nil)
	lists.RefuseWatchList()
	w.follow("lists", lists, dynamicinformer.Options{Types: types, Defaults: dynamicinformer.ResourceOptions{
		Namespaces: dynamicinformer.InNamespaces(w.namespaces...),
	}})
	w.settle()
	return w
}

func (w *world) runTracker() dynamicinformer.TypeSource {
	w.Helper()
	tracker, err := discovery.NewTracker(harness.Config(w), discovery.TrackerOptions{})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- tracker.Run(ctx) }() // ended by cancel
	w.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
	return tracker.Types()
}

// follow makes a factory that follows all types, with one subscriber each.
func (w *world) follow(name string, link *conformance.Faults, options dynamicinformer.Options) {
	w.Helper()
	options.Config = through(link, harness.Config(w))
	factory, err := dynamicinformer.New(options)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		for _, s := range w.subscribers {
			s.goOn()
		}
		if err := factory.Shutdown(w.ctx); err != nil {
			w.Error(err)
		}
	})
	for _, k := range w.kinds {
		i, err := factory.ForResource(k.gvr)
		if err != nil {
			w.Fatal(err)
		}
		f := &follower{Informer: i, kind: k, link: link, name: k.name + " over " + name}
		w.followers = append(w.followers, f)
		w.subscribeTo(f)
	}
	if err := factory.Start(w.ctx); err != nil {
		w.Fatal(err)
	}
}

func through(link *conformance.Faults, config *rest.Config) *rest.Config {
	config.Wrap(link.Wrap)
	return config
}

func (w *world) follower(r *rand.Rand) *follower { return w.followers[r.IntN(len(w.followers))] }

func (w *world) subscriber(r *rand.Rand) *subscriber {
	return w.subscribers[r.IntN(len(w.subscribers))]
}

func (w *world) subscribeTo(f *follower) *subscriber {
	w.Helper()
	s := newSubscriber(fmt.Sprintf("subscriber %d of %s", len(w.subscribers), f.name), f)
	var err error
	if s.handle, err = f.AddEventHandler(s); err != nil {
		w.Fatal(err)
	}
	w.subscribers = append(w.subscribers, s)
	return s
}

// subscribe adds a subscriber while things go on, and maybe has it wait from the start.
func (w *world) subscribe(f *follower, r *rand.Rand) {
	w.Helper()
	slow := r.IntN(2) == 0
	if w.late == lateSubscribers {
		return
	}
	w.late++
	if s := w.subscribeTo(f); slow {
		s.toggle()
	}
}

// unsubscribe removes one of the late subscribers.
func (w *world) unsubscribe(r *rand.Rand) {
	w.Helper()
	n := r.IntN(lateSubscribers)
	if n >= w.late {
		return
	}
	n += len(w.followers)
	s := w.subscribers[n]
	if err := s.follower.RemoveEventHandler(s.handle); err != nil {
		w.Fatal(err)
	}
	s.goOn()
	w.left += s.check(w)
	w.subscribers = append(w.subscribers[:n:n], w.subscribers[n+1:]...)
	w.late--
}

// delivered is how many events subscribers were told.
func (w *world) delivered() int {
	n := w.left
	for _, s := range w.subscribers {
		n += s.check(w)
	}
	return n
}

// settle lets everybody go on, and waits until all agree with the server.
func (w *world) settle() {
	w.Helper()
	for _, s := range w.subscribers {
		s.goOn()
	}
	for _, f := range w.followers {
		harness.Eventually(w, func(ctx context.Context) error { return w.agrees(ctx, f) })
	}
	for _, s := range w.subscribers {
		harness.Eventually(w, func(context.Context) error {
			if diff := cmp.Diff(s.follower.kind.expected(), s.state()); diff != "" {
				return fmt.Errorf("%s (-written +told):\n%s", s.name, diff)
			}
			return nil
		})
		s.check(w)
	}
}

// agrees compares what is in the cache with what the server lists, and that with what was written.
func (w *world) agrees(ctx context.Context, f *follower) error {
	status := f.Status()
	if status.State != dynamicinformer.StateSynced || !f.HasSynced() {
		return fmt.Errorf("%s is synced: %v, with the status %+v", f.name, f.HasSynced(), status)
	}
	list, err := w.admin.Resource(f.kind.gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	server, cached := map[string]any{}, map[string]any{}
	expected := map[string]seen{}
	for _, o := range list.Items {
		server[o.GetNamespace()+"/"+o.GetName()] = o.Object
		value, _, _ := unstructured.NestedInt64(o.Object, "spec", "value")
		expected[o.GetNamespace()+"/"+o.GetName()] = seen{UID: o.GetUID(), Value: value}
	}
	for _, o := range f.GetStore().List() {
		u := o.(*unstructured.Unstructured)
		cached[u.GetNamespace()+"/"+u.GetName()] = u.Object
	}
	if diff := cmp.Diff(f.kind.expected(), expected); diff != "" {
		return fmt.Errorf("%s on the server (-written +listed):\n%s", f.name, diff)
	}
	if diff := cmp.Diff(server, cached); diff != "" {
		return fmt.Errorf("%s (-server +cache):\n%s", f.name, diff)
	}
	definition, err := w.admin.Resource(crd.GVR).Get(ctx, f.kind.definition.GetName(), metav1.GetOptions{})
	if err != nil {
		return err
	}
	if status.UID != definition.GetUID() {
		return fmt.Errorf("%s follows the definition %s, the server has %s", f.name, status.UID, definition.GetUID())
	}
	return nil
}

// expected is what there is of a type.
func (k *kind) expected() map[string]seen {
	all := map[string]seen{}
	for key, o := range k.live {
		all[key] = seen{UID: o.uid, Value: o.value}
	}
	return all
}

// state is what the subscriber was told there is.
func (s *subscriber) state() map[string]seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.mu.live)
}

// check fails the test for what made no sense, and for what was never written, and returns the number of events.
func (s *subscriber) check(t *world) int {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.mu.nonsense {
		t.Error(line)
	}
	s.mu.nonsense = nil
	for uid, value := range s.mu.values {
		if o := s.follower.kind.known[uid]; o == nil || value > o.value {
			t.Errorf("%s was told the value %d of %s, which was never written: %+v", s.name, value, uid, o)
		}
	}
	return s.mu.events
}
