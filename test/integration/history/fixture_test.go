package history_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/test/integration/harness"
)

const (
	// lateSubscribers limits the late subscribers of all informers.
	lateSubscribers = 12
	// maxTemporaryInformers limits the informers that are acquired and released during the history.
	maxTemporaryInformers = 3
)

type fixture struct {
	*cluster
	// other is a second cluster with types and objects of the same names.
	other         *cluster
	secondCluster *harness.Cluster
	followers     []*follower
	subscribers   []*subscriber
	factories     []*dynamicinformer.Factory
	incarnations  []*incarnationChecker
	types         typesource.Source
	// process stops and starts during the history.
	process *process
	// restarted counts restarts of API servers, compacted counts compactions.
	restarted, compacted int
	// nextSubscriber is the number of the next subscriber. removedEvents counts the events of removed ones.
	nextSubscriber, removedEvents int
}

// follower is an informer under test.
type follower struct {
	*dynamicinformer.Informer
	kind *kind
	// faults connects all informers of a factory with the server.
	faults *conformance.Faults
	name   string
	// incarnations is the listener of the factory.
	incarnations *incarnationChecker
	// handle is set for a temporary informer. It is nil for permanent informers.
	handle *dynamicinformer.Handle
}

// newFixture installs the types and follows them: in one factory through watch-lists, in another through
// lists for each namespace, and in a process. The types have different storage modes.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	// t.Context ends before the cleanups
	ctx, cancel := context.WithTimeout(context.Background(), *duration+10*time.Minute)
	t.Cleanup(cancel)
	namespaces, group := []string{harness.Namespace(t), harness.Namespace(t)}, harness.Group(t)
	w := &fixture{cluster: newCluster(t, ctx, func() *rest.Config { return harness.Config(t) },
		group, namespaces)}
	t.Cleanup(func() {
		for _, k := range w.kinds {
			w.uninstall(k)
		}
	})
	w.startOtherCluster(group)
	w.types = w.startTracker()
	w.followUntilCleanup("watch-lists", conformance.NewFaults(), dynamicinformer.Options{Types: w.types,
		Resources: storagesByType(gvrs(w.kinds), 0)})
	lists := conformance.NewFaults()
	lists.RefuseWatchList()
	w.followUntilCleanup("lists", lists, dynamicinformer.Options{
		Types: w.types, Resources: storagesByType(gvrs(w.kinds), 1), Linger: -1, MemoryBudget: 1,
		Defaults: dynamicinformer.ResourceOptions{Namespaces: dynamicinformer.InNamespaces(w.namespaces...)},
	})
	w.process = newProcess(w)
	w.awaitAgreement()
	return w
}

// startOtherCluster starts the second cluster.
func (w *fixture) startOtherCluster(group string) {
	w.Helper()
	w.secondCluster = harness.StartAnotherCluster(w)
	config := func() *rest.Config { return w.secondCluster.Config(w) }
	w.other = newCluster(w.T, w.ctx, config, group, w.namespaces)
	for _, name := range w.namespaces {
		namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1",
			"kind": "Namespace", "metadata": map[string]any{"name": name}}}
		if _, err := w.other.admin.Resource(namespacesResource).Create(w.ctx, namespace,
			metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

func gvrs(kinds []*kind) []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for _, k := range kinds {
		all = append(all, k.gvr)
	}
	return all
}

// storagesByType assigns a storage mode to each type, rotated by offset.
func storagesByType(types []schema.GroupVersionResource,
	offset int) map[schema.GroupVersionResource]dynamicinformer.ResourceOptions {
	modes := []dynamicinformer.Storage{
		{Mode: dynamicinformer.StoragePacked},
		{Mode: dynamicinformer.StorageCompressed, Compression: s2.New()},
		{Mode: dynamicinformer.StorageObject},
		{Mode: dynamicinformer.StorageAdaptive, Compression: s2.New()},
	}
	all := map[schema.GroupVersionResource]dynamicinformer.ResourceOptions{}
	for n, gvr := range types {
		all[gvr] = dynamicinformer.ResourceOptions{Storage: modes[(n+offset)%len(modes)]}
	}
	return all
}

func (w *fixture) startTracker() typesource.Source {
	w.Helper()
	return harness.RunTracker(w, harness.Config(w)).Types()
}

// followUntilCleanup is follow for a factory that the test's cleanup shuts down.
func (w *fixture) followUntilCleanup(name string, faults *conformance.Faults,
	options dynamicinformer.Options) {
	w.Helper()
	factory := w.follow(name, faults, options)
	w.factories = append(w.factories, factory)
	w.Cleanup(func() {
		for _, s := range w.subscribers {
			s.Unblock()
		}
		if err := factory.Shutdown(w.ctx); err != nil {
			w.Error(err)
		}
	})
}

// follow starts a factory that follows all types with one subscriber each. The caller shuts it down.
func (w *fixture) follow(name string, faults *conformance.Faults,
	options dynamicinformer.Options) *dynamicinformer.Factory {
	w.Helper()
	g := newIncarnationChecker(name)
	w.incarnations = append(w.incarnations, g)
	options.Config, options.Listener = withFaults(faults, harness.Config(w)), g.listener()
	factory, err := dynamicinformer.New(options)
	if err != nil {
		w.Fatal(err)
	}
	for _, k := range w.kinds {
		i, err := factory.ForResource(k.gvr)
		if err != nil {
			w.Fatal(err)
		}
		f := &follower{Informer: i, kind: k, faults: faults, name: k.name + " over " + name, incarnations: g}
		w.followers = append(w.followers, f)
		w.subscribeTo(f, false)
	}
	if err := factory.Start(w.ctx); err != nil {
		w.Fatal(err)
	}
	return factory
}

func withFaults(faults *conformance.Faults, config *rest.Config) *rest.Config {
	config.Wrap(faults.Wrap)
	return config
}

func (w *fixture) randomFollower(r *rand.Rand) *follower {
	return w.followers[r.IntN(len(w.followers))]
}

// randomFaults returns the faults of a factory's connections or of the process's.
func (w *fixture) randomFaults(r *rand.Rand) *conformance.Faults {
	if n := r.IntN(len(w.followers) + len(w.kinds)); n < len(w.followers) {
		return w.followers[n].faults
	}
	return w.process.front.faults
}

func (w *fixture) randomSubscriber(r *rand.Rand) *subscriber {
	return w.subscribers[r.IntN(len(w.subscribers))]
}

// countDelivered returns the number of received events of all subscribers.
func (w *fixture) countDelivered() int {
	n := w.removedEvents
	for _, s := range w.subscribers {
		n += s.check(w)
	}
	return n
}

// switchableAddress is the address at which a process reaches one of several clusters.
type switchableAddress struct {
	*harness.TLSServer
	// faults connects the address with the clusters.
	faults   *conformance.Faults
	backends map[*cluster]http.Handler
	current  atomic.Pointer[http.Handler]
}

func newSwitchableAddress(w *fixture, clusters ...*cluster) *switchableAddress {
	w.Helper()
	f := &switchableAddress{faults: conformance.NewFaults(), backends: map[*cluster]http.Handler{}}
	for _, c := range clusters {
		config := c.config()
		target, err := url.Parse(config.Host)
		if err != nil {
			w.Fatal(err)
		}
		transport, err := rest.TransportFor(config)
		if err != nil {
			w.Fatal(err)
		}
		f.backends[c] = &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				// Without the client's header, the transport decompresses responses. The faults then find
				// complete events.
				r.Out.Header.Del("Accept-Encoding")
			},
			Transport: f.faults.Wrap(transport), FlushInterval: -1,
			// forwards the failure to the client
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
			ErrorLog:     log.New(io.Discard, "", 0),
		}
	}
	f.pointTo(clusters[0])
	f.TLSServer = harness.NewTLSServer(w, http.HandlerFunc(func(rw http.ResponseWriter,
		r *http.Request) {
		(*f.current.Load()).ServeHTTP(rw, r)
	}))
	return f
}

func (f *switchableAddress) pointTo(target *cluster) {
	handler := f.backends[target]
	f.current.Store(&handler)
}

// swap switches to another cluster and breaks all connections.
func (f *switchableAddress) swap(target *cluster) {
	f.pointTo(target)
	f.BreakConnections()
}

// excludedNamespace is the namespace that temporary informers exclude, so that they have other options.
const excludedNamespace = "nowhere"

func (w *fixture) subscribeTo(f *follower, late bool) *subscriber {
	w.Helper()
	w.nextSubscriber++
	s := &subscriber{follower: f, late: late,
		Witness: harness.NewWitness(fmt.Sprintf("subscriber %d of %s", w.nextSubscriber, f.name),
			func() int { return f.Status().Incarnation })}
	var err error
	if s.handle, err = f.AddEventHandler(s); err != nil {
		w.Fatal(err)
	}
	w.subscribers = append(w.subscribers, s)
	return s
}

// subscribe adds a subscriber, which may block from the start.
func (w *fixture) subscribe(f *follower, slow bool) {
	w.Helper()
	if w.countLate() >= lateSubscribers {
		return
	}
	if s := w.subscribeTo(f, true); slow {
		s.ToggleBlocking()
	}
}

func (w *fixture) countLate() int {
	n := 0
	for _, s := range w.subscribers {
		if s.late {
			n++
		}
	}
	return n
}

// unsubscribe removes a late subscriber.
func (w *fixture) unsubscribe(s *subscriber) {
	w.Helper()
	if !s.late {
		return
	}
	if err := s.follower.RemoveEventHandler(s.handle); err != nil {
		w.Fatal(err)
	}
	w.checkAndForget(s)
}

// checkAndForget checks and removes a subscriber that gets no more events.
func (w *fixture) checkAndForget(s *subscriber) {
	w.Helper()
	s.Unblock()
	w.removedEvents += s.check(w)
	w.subscribers = slices.DeleteFunc(w.subscribers, func(other *subscriber) bool { return other == s })
}

// acquireTemporary acquires a temporary informer of a type. All temporary informers of a type share the
// informer.
func (w *fixture) acquireTemporary(factory int, k *kind) {
	w.Helper()
	temporary := 0
	for _, f := range w.followers {
		if f.handle != nil {
			temporary++
		}
	}
	if temporary >= maxTemporaryInformers {
		return
	}
	options := dynamicinformer.ResourceOptions{
		Namespaces: dynamicinformer.ExceptNamespaces(excludedNamespace),
	}
	handle, err := w.factories[factory].Acquire(k.gvr, options)
	if err != nil {
		w.Fatal(err)
	}
	f := &follower{
		Informer: handle.Informer(), kind: k, handle: handle,
		faults: w.followers[factory*len(w.kinds)].faults,
		name:   fmt.Sprintf("temporary informer of %s from factory %d", k.name, factory),
	}
	w.followers = append(w.followers, f)
	w.subscribeTo(f, false)
}

// releaseTemporary releases a temporary informer with its subscribers.
func (w *fixture) releaseTemporary(f *follower) {
	w.Helper()
	if f.handle == nil {
		return
	}
	for _, s := range slices.Clone(w.subscribers) {
		if s.follower == f {
			if err := f.RemoveEventHandler(s.handle); err != nil {
				w.Fatal(err)
			}
			w.checkAndForget(s)
		}
	}
	f.handle.Release()
	w.followers = slices.DeleteFunc(w.followers, func(other *follower) bool { return other == f })
}
