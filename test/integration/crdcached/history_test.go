package crdcached_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/test/integration/harness"
)

var (
	rounds = flag.Int("rounds", 1, "the number of rounds of TestHistory")
	seed   = flag.Uint64("seed", 0, "the seed of the first round of TestHistory; 0 means a seed from the clock")
)

// stepsAround is the number of writes during a disruption, and again after it.
const stepsAround = 40

// TestHistory writes at random while the API server, etcd and crdcached are killed. Some clients alternate
// between the three servers during watches, others stay with the killed server. Between its lists, no client
// may miss an event or receive a wrong one. Events of client-go's informers must be consistent. Finally, all
// clients must agree with the cluster.
func TestHistory(t *testing.T) {
	widgets := installWidgets(t)
	namespaces := []string{harness.Namespace(t), harness.Namespace(t)}
	firstSeed := *seed
	if firstSeed == 0 {
		firstSeed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	victim, other := startDaemon(t, widgets), startProcess(t, widgets)
	w := newWriter(t, widgets, namespaces)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var readers []*reader
	for n, configs := range []serverConfigs{
		{victim.config(), other.config(), harness.Config(t)}, {victim.config(),
			other.config()}, {victim.config()}, {harness.Config(t), victim.config()},
	} {
		r := newReader(t, fmt.Sprint("reader ", n), widgets, configs)
		readers = append(readers, r)
		ended := make(chan struct{})
		go func() { defer close(ended); r.run(ctx) }() // ended by cancel
		defer func() { cancel(); <-ended }()
	}
	followers := startFollowers(t, widgets, victim, other)
	for n := range uint64(*rounds) {
		t.Logf("round %d has the seed %d", n+1, firstSeed+n)
		random := rand.New(rand.NewPCG(firstSeed+n, 0))
		disruptions := []func(){
			func() { victim.kill(); victim.restart() },
			func() { harness.KillAPIServer(t); harness.RestartAPIServer(t) },
			func() { harness.KillEtcd(t); harness.RestartEtcd(t) },
		}
		for _, number := range random.Perm(len(disruptions)) {
			w.writeDuring(random, disruptions[number])
			t.Logf("disruption %d ended at %s, with %d writes", number,
				time.Now().Format("05.000"), len(w.order))
		}
		for _, f := range followers {
			harness.Eventually(t, func(context.Context) error { return f.compare(w) })
			f.check(t, w)
		}
		for _, r := range readers {
			harness.Eventually(t, func(context.Context) error { return r.compare(w) })
			r.check(w)
		}
		if t.Failed() {
			t.Fatalf("run this round again: go test ./crdcached -run TestHistory -args -seed=%d", firstSeed+n)
		}
	}
	for _, r := range readers {
		t.Logf("%s listed %d times and received %d events", r.name, len(r.segments), r.countEvents())
	}
}

// writeDuring writes before, during and after a disruption, which action causes.
func (w *writer) writeDuring(random *rand.Rand, action func()) {
	w.Helper()
	begin, over := 1+random.IntN(stepsAround), make(chan struct{})
	for range begin {
		w.step(random)
	}
	go func() { defer close(over); action() }() // ended below
	for range stepsAround {
		w.step(random)
	}
	<-over
	for range stepsAround {
		w.step(random)
	}
}

// diff describes the difference between state and the written objects. It returns nil if there is none.
func (w *writer) diff(name string, state map[string]objectState) error {
	if diff := cmp.Diff(w.live, state, cmp.AllowUnexported(objectState{})); diff != "" {
		return fmt.Errorf("%s (-written +received):\n%s", name, diff)
	}
	return nil
}

// objectState is the UID, version and value of an object after a write.
type objectState struct {
	uid     types.UID
	version uint64
	value   string
}

// writer is the only writer of a type, and records all changes.
type writer struct {
	*testing.T
	gvr        schema.GroupVersionResource
	client     dynamic.Interface
	namespaces []string
	values     int // number of used values
	// live maps the keys of existing objects to their state. log maps versions to writes.
	live map[string]objectState
	log  map[uint64]entry
	// order has the versions of log in the order of the writes.
	order     []uint64
	deletions []deletion
}

type entry struct {
	key string
	objectState
}

// deletion is a deleted object. Its version lies between after and before. before is 0 until the next write.
type deletion struct {
	key           string
	uid           types.UID
	after, before uint64
}

func newWriter(t *testing.T, gvr schema.GroupVersionResource, namespaces []string) *writer {
	t.Helper()
	return &writer{T: t, gvr: gvr, client: adminClient(t), namespaces: namespaces,
		live: map[string]objectState{},
		log:  map[uint64]entry{}}
}

// step creates, updates or deletes an object. After an ambiguous error, it reads the object and retries until
// the change has happened exactly once.
func (w *writer) step(r *rand.Rand) {
	w.Helper()
	namespace, name := w.namespaces[r.IntN(len(w.namespaces))], fmt.Sprint("o", r.IntN(8))
	key := namespace + "/" + name
	previous, exists := w.live[key]
	objects := w.client.Resource(w.gvr).Namespace(namespace)
	if exists && r.IntN(5) == 0 {
		w.retry(func(ctx context.Context) error {
			err := objects.Delete(ctx, name,
				metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &previous.uid}})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		})
		delete(w.live, key)
		w.deletions = append(w.deletions, deletion{key: key, uid: previous.uid, after: w.last()})
		return
	}
	w.values++
	o := newObject(w.gvr, name, strconv.Itoa(w.values))
	o.SetUID(previous.uid)
	if exists {
		o.SetResourceVersion(strconv.FormatUint(previous.version, 10))
	}
	var written *unstructured.Unstructured
	w.retry(func(ctx context.Context) (err error) {
		if exists {
			written, err = objects.Update(ctx, o, metav1.UpdateOptions{})
		} else {
			written, err = objects.Create(ctx, o, metav1.CreateOptions{})
		}
		if err == nil {
			return nil
		}
		found, readErr := objects.Get(ctx, name, metav1.GetOptions{})
		if readErr == nil && found.GetLabels()["value"] == o.GetLabels()["value"] {
			written = found
			return nil
		}
		return err
	})
	w.record(key, stateOf(written))
}

// retry repeats f until it succeeds.
func (w *writer) retry(f func(context.Context) error) {
	w.Helper()
	harness.Eventually(w, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second) // a killed server may never answer
		defer cancel()
		return f(ctx)
	})
}

// record adds a successful write to the log.
func (w *writer) record(key string, written objectState) {
	w.live[key] = written
	w.log[written.version] = entry{key, written}
	w.order = append(w.order, written.version)
	for i := len(w.deletions) - 1; i >= 0 && w.deletions[i].before == 0; i-- {
		w.deletions[i].before = written.version
	}
}

// last returns the version of the last write.
func (w *writer) last() uint64 {
	if len(w.order) == 0 {
		return 0
	}
	return w.order[len(w.order)-1]
}

// stateOf returns the state of an object that a client has received.
func stateOf(o metav1.Object) objectState {
	version, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("the resource version of %s is %q", o.GetName(), o.GetResourceVersion()))
	}
	return objectState{o.GetUID(), version, o.GetLabels()["value"]}
}

func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// TestGracefulRestart restarts crdcached gracefully. client-go's informers must not list again, and a client
// must be able to continue a list.
func TestGracefulRestart(t *testing.T) {
	t.Run("without changes", func(t *testing.T) {
		testGracefulRestart(t, false)
	})
	t.Run("with changes meanwhile, and a disk", func(t *testing.T) {
		testGracefulRestart(t, true)
	})
}

func testGracefulRestart(t *testing.T, changes bool) {
	widgets := installWidgets(t)
	namespace := harness.Namespace(t)
	server := newDaemon(t, widgets)
	if changes {
		server.configText += fmt.Sprintf("persistenceDirectory: %q\n", t.TempDir())
	}
	server.restart()
	objects := adminClient(t).Resource(widgets).Namespace(namespace)
	create := func(name string) {
		t.Helper()
		_, err := objects.Create(t.Context(), newObject(widgets, name, "1"), metav1.CreateOptions{})
		must(t, err)
	}
	for n := range 3 {
		create(fmt.Sprint("before-", n))
	}
	var lists atomic.Int64
	var informers []cache.SharedIndexInformer
	for range 3 {
		informer := newCountedInformer(t, server.config(), widgets, &lists)
		harness.Eventually(t, func(context.Context) error {
			return checkCached(informer, namespace+"/before-2")
		})
		informers = append(informers, informer)
	}
	path := "/apis/" + widgets.Group + "/v1/namespaces/" + namespace + "/widgets?limit=2"
	pages := &listPages{T: t, config: server.config(), path: path}
	pages.readNext()
	listed := lists.Load()

	if err := server.server.Stop(); err != nil {
		t.Error(err)
	}
	// The cluster's resource version increases while the server is down.
	others := adminClient(t).Resource(configMaps).Namespace(namespace)
	_, err := others.Create(t.Context(), newObject(configMaps, "other", "1"), metav1.CreateOptions{})
	must(t, err)
	if changes {
		create("meanwhile")
	}
	server.restart()
	create("after")
	for _, informer := range informers {
		harness.Eventually(t, func(context.Context) error {
			if changes {
				if err := checkCached(informer, namespace+"/meanwhile"); err != nil {
					return err
				}
			}
			return checkCached(informer, namespace+"/after")
		})
	}
	if again := lists.Load() - listed; again != 0 {
		t.Errorf("the informers listed %d times after the restart, want 0", again)
	}
	if pages.readNext(); len(pages.names) != 3 {
		t.Errorf("the pages have the objects %v, want 3", pages.names)
	}
}

// newCountedInformer runs a client-go informer until the test ends and counts its lists.
func newCountedInformer(
	t *testing.T, config *rest.Config, gvr schema.GroupVersionResource, lists *atomic.Int64,
) cache.SharedIndexInformer {
	t.Helper()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			query := r.URL.Query()
			if err == nil && (query.Get("watch") == "" || query.Get("sendInitialEvents") == "true") {
				lists.Add(1)
			}
			return response, err
		})
	})
	informer := newDynamicInformer(t, config, gvr)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); informer.RunWithContext(ctx) }() // ended by cancel
	t.Cleanup(func() { cancel(); <-ended })
	return informer
}

// checkCached returns an error unless an informer has the object of a key.
func checkCached(informer cache.SharedIndexInformer, key string) error {
	if _, found, err := informer.GetStore().GetByKey(key); err != nil || !found {
		return fmt.Errorf("the informer has no %s: %v", key, err)
	}
	return nil
}

type listPages struct {
	*testing.T
	config        *rest.Config
	path          string
	names         []string
	version       string
	continueToken string
}

// readNext reads a page. All pages must have the same version.
func (p *listPages) readNext() {
	p.Helper()
	path := p.path
	if p.continueToken != "" {
		path += "&continue=" + url.QueryEscape(p.continueToken)
	}
	var list struct {
		Metadata struct{ ResourceVersion, Continue string }
		Items    []struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal(fetch(p.T, p.config, path), &list); err != nil {
		p.Fatal(err)
	}
	if version := list.Metadata.ResourceVersion; p.version != "" && p.version != version {
		p.Errorf("the page has version %s, and the previous page %s", version, p.version)
	}
	p.version, p.continueToken = list.Metadata.ResourceVersion, list.Metadata.Continue
	for _, item := range list.Items {
		p.names = append(p.names, item.Metadata.Name)
	}
}

func fetch(t *testing.T, config *rest.Config, path string) []byte {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	must(t, err)
	response, err := client.Do(r)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v %s", path, response.Status, err, text)
	}
	return text
}
