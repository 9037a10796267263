package conformance

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
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

// patience is how long a stage waits for anything before it gives up.
const patience = time.Minute

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

	// stages numbers the namespaces of one process; epoch tells processes apart on a server that lives on.
	stages atomic.Int64
	epoch  = time.Now().UnixNano()
)

// Stage is one run of one scenario with one implementation.
type Stage struct {
	t   testing.TB
	ctx context.Context
	new New
	// verb is how the informer is to get its first list.
	verb string
	// config is of the server itself, without faults.
	config *rest.Config
	// direct writes; Faults stands only between the informer and the server.
	direct dynamic.Interface
	// namespace is the stage's own.
	namespace string

	// Faults breaks the informer's connection.
	Faults *Faults
	// Informer is made by Start (or by the scenario).
	Informer cache.SharedIndexInformer

	stop      context.CancelFunc
	ended     chan struct{}
	recorders []*recorder
	notes     []string
	settled   int
}

func newStage(t testing.TB, config *rest.Config, build New, verb string, patience time.Duration) *Stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	config = rest.CopyConfig(config)
	config.QPS = -1
	direct, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	s := &Stage{t: t, ctx: ctx, new: build, verb: verb, config: config, direct: direct,
		Faults: NewFaults(nil)}
	if verb == "list" {
		s.Faults.RefuseWatchList()
	}
	s.namespace = s.newNamespace()
	return s
}

// end returns the trace, and checks that the informer got its first list as it should.
func (s *Stage) end(subject string) trace {
	if s.Faults.Requests(s.verb) == 0 {
		s.t.Errorf("the informer never sent a %s", s.verb)
	}
	return trace{subject: subject, lines: s.notes}
}

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

// Setup is that of the stage's ConfigMaps, through Faults.
func (s *Stage) Setup() Setup {
	config := rest.CopyConfig(s.config)
	config.Wrap(s.Faults.Wrap)
	return Setup{
		Config: config, GVR: configMaps, Namespace: s.namespace, LabelSelector: "suite=conformance",
		Indexers: cache.Indexers{}, // client-go cannot add to a nil map
	}
}

// Make makes the informer of the stage's ConfigMaps.
func (s *Stage) Make(resync time.Duration, indexers cache.Indexers) {
	s.t.Helper()
	setup := s.Setup()
	setup.Resync = resync
	if indexers != nil {
		setup.Indexers = indexers
	}
	s.Informer = s.new(s.t, setup)
}

// Fresh waits until lists that the server answers from its cache show everything that was written. Otherwise
// an object might be missing from a list and come with the watch, as it pleases. It writes a ConfigMap that
// is not of the suite and waits for that one: a list's resource version counts what happens to other types,
// too, of which a cache may never hear.
func (s *Stage) Fresh() {
	s.t.Helper()
	own := s.direct.Resource(configMaps).Namespace(s.namespace) // the cache is one for all namespaces
	marker := &unstructured.Unstructured{}
	marker.SetAPIVersion("v1")
	marker.SetKind("ConfigMap")
	marker.SetGenerateName("fresh-")
	latest, err := own.Create(s.ctx, marker, metav1.CreateOptions{})
	s.must(err)
	_, err = own.List(s.ctx, metav1.ListOptions{ResourceVersion: latest.GetResourceVersion()})
	s.must(err)
}

// Hold keeps the informer's requests waiting until release is called, and the server's cache is fresh.
func (s *Stage) Hold() (release func()) {
	open := s.Faults.Hold()
	return func() {
		s.t.Helper()
		s.Fresh()
		open()
	}
}

// Run runs the informer until the end of the stage.
func (s *Stage) Run() {
	s.t.Helper()
	s.Fresh()
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

// Start makes an informer with one recording handler and runs it until it is settled.
func (s *Stage) Start() *recorder {
	s.t.Helper()
	s.Make(0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	r := s.Handle()
	s.Run()
	s.Settle()
	return r
}

// Handle adds a recording handler whose trace is compared.
func (s *Stage) Handle() *recorder {
	s.t.Helper()
	r, _ := s.HandleWith(cache.HandlerOptions{})
	return r
}

// HandleWith is Handle with options.
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

// PutIn is Put in a namespace. Labels come in pairs and are set besides the suite's and the stage's.
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

// Settle waits until the handlers have seen everything that happened on the server. It changes the sentinel
// twice: where the first change came in with a list, in no order, the second comes with the watch after it.
func (s *Stage) Settle() {
	s.t.Helper()
	for range 2 {
		s.settled++
		want := s.settled
		s.Put(sentinel, strconv.Itoa(want))
		for k, r := range s.recorders {
			err := r.await(s.ctx, func(_ map[string][]string, seen int) bool { return seen >= want })
			if err != nil {
				s.t.Fatalf("handler %d has not seen change %d of the sentinel: %v", k, want, err)
			}
		}
	}
}

// Forget leaves a handler out of Settle, because it gets no events any more. Its trace still counts.
func (s *Stage) Forget(r *recorder) {
	s.recorders = slices.DeleteFunc(s.recorders, func(other *recorder) bool { return other == r })
}

// Note adds a line to the stage's trace.
func (s *Stage) Note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// NoteTrace adds what a handler saw to the stage's trace.
func (s *Stage) NoteTrace(title string, r *recorder) {
	for _, line := range r.trace() {
		s.Note("%s: %s", title, line)
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
	s.notes = append(s.notes, lines...)
}

// await waits for a condition on what changes without an event; it polls.
func (s *Stage) await(what string, done func() bool) {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-s.ctx.Done():
			s.t.Fatalf("waiting for %s: %v", what, s.ctx.Err())
		case <-tick.C:
		}
	}
}

// counter is a number that a callback and a scenario share.
type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *counter) value() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}
