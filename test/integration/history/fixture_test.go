package history_test

import (
	"context"
	"math/rand/v2"
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
	w.followUntilCleanup("watch-lists", conformance.NewFaults(nil), dynamicinformer.Options{Types: w.types,
		Resources: storagesByType(gvrs(w.kinds), 0)})
	lists := conformance.NewFaults(nil)
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
		{Mode: dynamicinformer.StorageCompressed, Compression: s2.New(s2.Options{})},
		{Mode: dynamicinformer.StorageObject},
		{Mode: dynamicinformer.StorageAdaptive, Compression: s2.New(s2.Options{})},
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
