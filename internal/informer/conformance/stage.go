package conformance

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// waitLimit limits each wait of a stage.
const waitLimit = 5 * time.Minute

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

	// stages counts the namespaces of this process. epoch makes their names unique across processes.
	stages atomic.Int64
	epoch  = time.Now().UnixNano()
)

// Stage is one run of one scenario with one implementation.
type Stage struct {
	t   testing.TB
	ctx context.Context
	new NewInformerFunc
	// verb is the expected verb of the first list.
	verb string
	// config has no faults.
	config *rest.Config
	// direct is the client for writes, without faults.
	direct    dynamic.Interface
	namespace string

	// Faults injects faults into the informer's connection.
	Faults *Faults
	// Informer is set by Start, or by the scenario.
	Informer cache.SharedIndexInformer

	stop            context.CancelFunc
	ended           chan struct{}
	recorders       []*recorder
	traceLines      []string
	sentinelChanges int
}

// NewStage returns a stage for an informer of build. verb is the expected verb of its first list: "list" or
// "watch-list". Waits end after patience.
func NewStage(t testing.TB, config *rest.Config, build NewInformerFunc, verb string,
	patience time.Duration) *Stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	config = rest.CopyConfig(config)
	config.QPS = -1
	direct, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &Stage{t: t, ctx: ctx, new: build, verb: verb, config: config, direct: direct, Faults: NewFaults()}
	if verb == "list" {
		s.Faults.RefuseWatchList()
	}
	s.namespace = s.newNamespace()
	return s
}

// End returns the trace, and checks the verb of the first list.
func (s *Stage) End(subject string) Trace {
	if s.Faults.Requests(s.verb) == 0 {
		s.t.Errorf("the informer never sent a %s", s.verb)
	}
	return Trace{subject: subject, lines: s.traceLines}
}

// Namespace returns the namespace of the stage's objects.
func (s *Stage) Namespace() string { return s.namespace }

func (s *Stage) newNamespace() string {
	s.t.Helper()
	name := fmt.Sprintf("conformance-%x-%d", epoch, stages.Add(1))
	ns := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name},
	}}
	_, err := s.direct.Resource(namespaces).Create(s.ctx, ns, metav1.CreateOptions{})
	s.must(err)
	return name
}

func (s *Stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// Setup returns the setup for the stage's ConfigMaps, with its faults.
func (s *Stage) Setup() Setup {
	config := rest.CopyConfig(s.config)
	config.Wrap(s.Faults.Wrap)
	return Setup{
		Config: config, GVR: configMaps, Namespace: s.namespace, LabelSelector: "suite=conformance",
		Indexers: cache.Indexers{}, // client-go cannot add to a nil map
	}
}

// Make creates an informer of the stage's ConfigMaps.
func (s *Stage) Make(resync time.Duration) {
	s.t.Helper()
	s.make(func(setup *Setup) { setup.Resync = resync })
}

func (s *Stage) make(change func(*Setup)) {
	s.t.Helper()
	setup := s.Setup()
	change(&setup)
	s.Informer = s.new(s.t, setup)
}

// AwaitServerCache waits until lists from the server's cache have everything that was written. Otherwise an
// object could be missing from a list and arrive with the watch. It writes a ConfigMap outside the suite and
// waits for that one. The resource version of a list is not enough, because it also counts changes of other
// types.
func (s *Stage) AwaitServerCache() {
	s.t.Helper()
	namespaced := s.direct.Resource(configMaps).Namespace(s.namespace) // all namespaces have one cache
	marker := &unstructured.Unstructured{}
	marker.SetAPIVersion("v1")
	marker.SetKind("ConfigMap")
	marker.SetGenerateName("fresh-")
	latest, err := namespaced.Create(s.ctx, marker, metav1.CreateOptions{})
	s.must(err)
	_, err = namespaced.List(s.ctx, metav1.ListOptions{ResourceVersion: latest.GetResourceVersion()})
	s.must(err)
}

// Hold holds the informer's requests until release is called and the server's cache is up to date.
func (s *Stage) Hold() (release func()) {
	open := s.Faults.Hold()
	return func() {
		s.t.Helper()
		s.AwaitServerCache()
		open()
	}
}

// Run runs the informer until the end of the stage.
func (s *Stage) Run() {
	s.t.Helper()
	s.AwaitServerCache()
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.ended = make(chan struct{})
	go func() { // ended by Stop, which the cleanup calls at the latest
		defer close(s.ended)
		s.Informer.RunWithContext(ctx)
	}()
	s.t.Cleanup(s.Stop)
}

// Stop stops the informer and waits for its end.
func (s *Stage) Stop() {
	s.stop()
	<-s.ended
}

// Start runs an informer with a recording handler and an index by namespace, and waits until it is settled.
func (s *Stage) Start() *recorder {
	s.t.Helper()
	return s.startWith(func(setup *Setup) {
		setup.Indexers = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	})
}

// startWith is Start for a changed setup.
func (s *Stage) startWith(change func(*Setup)) *recorder {
	s.t.Helper()
	s.make(change)
	r := s.Handle()
	s.Run()
	s.Settle()
	return r
}

// conclude waits until everything has been delivered, and adds the events of a handler and the content of the
// cache to the stage's trace.
func (s *Stage) conclude(r *recorder) {
	s.t.Helper()
	s.Settle()
	s.NoteTrace("", r)
	s.NoteStore()
}

// Handle adds a recording handler to the compared trace.
func (s *Stage) Handle() *recorder {
	s.t.Helper()
	r, _ := s.HandleWith(cache.HandlerOptions{})
	return r
}

// HandleWith works like Handle with options.
func (s *Stage) HandleWith(options cache.HandlerOptions) (*recorder, cache.ResourceEventHandlerRegistration) {
	s.t.Helper()
	r := newRecorder()
	handle, err := s.Informer.AddEventHandlerWithOptions(r, options)
	s.must(err)
	s.recorders = append(s.recorders, r)
	return r, handle
}

func configMap(name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": name, "labels": map[string]any{"suite": "conformance"}},
		"data":       map[string]any{"value": value},
	}}
}

// Put creates or updates an object.
func (s *Stage) Put(name, value string, labels ...string) {
	s.t.Helper()
	s.PutIn(s.namespace, name, value, labels...)
}

// PutIn is Put in a namespace. labels are pairs in addition to the suite's and the stage's labels.
func (s *Stage) PutIn(namespace, name, value string, labels ...string) {
	s.t.Helper()
	obj := configMap(name, value)
	with := obj.GetLabels()
	with["stage"] = s.namespace
	for pair := range slices.Chunk(labels, 2) {
		with[pair[0]] = pair[1]
	}
	obj.SetLabels(with)
	client := s.direct.Resource(configMaps).Namespace(namespace)
	have, err := client.Get(s.ctx, name, metav1.GetOptions{})
	if err != nil {
		_, err = client.Create(s.ctx, obj, metav1.CreateOptions{})
	} else {
		obj.SetResourceVersion(have.GetResourceVersion())
		_, err = client.Update(s.ctx, obj, metav1.UpdateOptions{})
	}
	s.must(err)
}

// Delete deletes an object.
func (s *Stage) Delete(name string) {
	s.t.Helper()
	s.must(s.direct.Resource(configMaps).Namespace(s.namespace).Delete(s.ctx, name, metav1.DeleteOptions{}))
}

// Settle waits until the handlers have received all events. It changes the sentinel twice: if the first
// change arrives with a list, which has no order, the second arrives with the watch after it.
func (s *Stage) Settle() {
	s.t.Helper()
	for range 2 {
		s.sentinelChanges++
		want := s.sentinelChanges
		s.Put(sentinel, strconv.Itoa(want))
		for k, r := range s.recorders {
			err := r.await(s.ctx, func(_ map[string][]string, eventCount int) bool {
				return eventCount >= want
			})
			if err != nil {
				s.t.Fatalf("handler %d has not seen change %d of the sentinel: %v", k, want, err)
			}
		}
	}
}

// Forget excludes a handler from Settle, because it receives no more events. Its trace is still compared.
func (s *Stage) Forget(r *recorder) {
	s.recorders = slices.DeleteFunc(s.recorders, func(other *recorder) bool { return other == r })
}

// Note adds a line to the stage's trace.
func (s *Stage) Note(format string, args ...any) {
	s.traceLines = append(s.traceLines, fmt.Sprintf(format, args...))
}

// NoteTrace adds the events of a handler to the stage's trace, with a title unless that is empty.
func (s *Stage) NoteTrace(title string, r *recorder) {
	for _, line := range r.trace() {
		s.Note("%s", strings.TrimPrefix(title+": "+line, ": "))
	}
}

// NoteChanges is NoteTrace without the updates of unchanged objects by a list.
func (s *Stage) NoteChanges(r *recorder) {
	for _, line := range r.trace() {
		name, events, _ := strings.Cut(line, ": ")
		var traceLines []string
		for event := range strings.SplitSeq(events, ", ") {
			if !strings.HasPrefix(event, "resync ") {
				traceLines = append(traceLines, event)
			}
		}
		s.Note("%s: %s", name, strings.Join(traceLines, ", "))
	}
}

// NoteStore adds the content of the cache, without the sentinel, to the stage's trace.
func (s *Stage) NoteStore() {
	var lines []string
	for _, obj := range s.Informer.GetIndexer().List() {
		u := obj.(*unstructured.Unstructured)
		if u.GetName() != sentinel {
			lines = append(lines, fmt.Sprintf("store: %s=%s", u.GetName(), value(u)))
		}
	}
	slices.Sort(lines)
	s.traceLines = append(s.traceLines, lines...)
}

// Await polls a condition.
func (s *Stage) Await(condition string, done func() bool) {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-s.ctx.Done():
			s.t.Fatalf("waiting for %s: %v", condition, s.ctx.Err())
		case <-tick.C:
		}
	}
}

// awaitSync waits until all sources have synced.
func (s *Stage) awaitSync(sources ...cache.ResourceEventHandlerRegistration) {
	s.t.Helper()
	for _, source := range sources {
		select {
		case <-source.HasSyncedChecker().Done():
		case <-s.ctx.Done():
			s.t.Fatalf("waiting for the sync of %T: %v", source, s.ctx.Err())
		}
	}
}
