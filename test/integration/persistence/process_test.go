package persistence_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/storage/disk"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// process has the informers of a simulated process, and the recorders of their events.
type process struct {
	informers []*dynamicinformer.Informer
	recorders []*eventRecorder
}

// countObjects returns the number of cached objects.
func (r *process) countObjects() (n int) {
	for _, i := range r.informers {
		n += len(i.GetStore().ListKeys())
	}
	return n
}

// outcome has the numbers of full lists and of resumed informers of a process.
type outcome struct{ lists, resumed int }

// runProcess runs a process: it waits until the types are synced, compares the caches and the handlers'
// events with the server, and ends. It returns the number of full lists, and the number of informers that
// resumed.
func (p *fixture) runProcess(name string, whileSynced func(*process)) outcome {
	p.Helper()
	config := rest.CopyConfig(harness.Config(p.T))
	config.QPS = -1
	var traffic traffic
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, &traffic} })
	backend := disk.New(p.dir, disk.Options{})
	began, before := time.Now(), cpuTime()
	f, err := dynamicinformer.New(dynamicinformer.Options{Config: config, Persistence: backend})
	if err != nil {
		p.Fatal(err)
	}
	r := &process{}
	for _, gvr := range p.types {
		i, err := f.ForResource(gvr)
		if err != nil {
			p.Fatal(err)
		}
		recorder := &eventRecorder{versions: map[string]string{}}
		if _, err := i.AddEventHandler(recorder.handler()); err != nil {
			p.Fatal(err)
		}
		r.informers, r.recorders = append(r.informers, i), append(r.recorders, recorder)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := f.Start(ctx); err != nil {
		p.Fatal(err)
	}
	if err := f.WaitForSync(ctx); err != nil {
		p.Fatal(err)
	}
	p.Logf("%s: synced after %v, with %v of processor time and %d KB read", name,
		time.Since(began).Round(time.Millisecond), cpuTime()-before,
		traffic.bytes.Load()>>10)
	if whileSynced != nil {
		whileSynced(r)
	}
	var o outcome
	for n, i := range r.informers {
		if err := i.Flush(ctx); err != nil {
			p.Fatal(err)
		}
		p.compare(name, n, i, r.recorders[n])
	}
	if err := f.Shutdown(ctx); err != nil {
		p.Fatal(err)
	}
	for _, i := range r.informers {
		status := i.Persistence()
		if status.Err != nil || status.Checkpoint.Objects != len(i.GetStore().ListKeys()) {
			p.Errorf("%s: Persistence() = %+v, want no error and %d objects", name, status,
				len(i.GetStore().ListKeys()))
		}
		if status.Resumed {
			o.resumed++
		}
	}
	if err := backend.Close(ctx); err != nil {
		p.Error(err)
	}
	o.lists = int(traffic.lists.Load())
	p.Logf("%s: %d of %d informers resumed; %d full lists were sent", name, o.resumed,
		len(p.types), o.lists)
	return o
}

// compare compares an idle cache and its handler's events with the server.
func (p *fixture) compare(process string, number int, i *dynamicinformer.Informer, recorder *eventRecorder) {
	p.Helper()
	list, err := p.clients[number].List(p.Context(), metav1.ListOptions{})
	if err != nil {
		p.Fatal(err)
	}
	want := map[string]string{}
	for _, o := range list.Items {
		want[p.namespace+"/"+o.GetName()] = o.GetResourceVersion()
	}
	got := map[string]string{}
	for _, obj := range i.GetStore().List() {
		o := obj.(*unstructured.Unstructured)
		got[p.namespace+"/"+o.GetName()] = o.GetResourceVersion()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		p.Errorf("%s: cached versions (-server +cache): %.2000s", process, diff)
	}
	recorder.mu.Lock()
	defer recorder.mu.Unlock()
	if diff := cmp.Diff(want, recorder.versions); diff != "" || len(recorder.violations) > 0 {
		p.Errorf("%s: the handler received contradicting events of %v, and the versions (-server +handler): %.2000s",
			process, recorder.violations, diff)
	}
}

// eventRecorder records the events of a handler.
type eventRecorder struct {
	mu       sync.Mutex
	versions map[string]string
	// violations has the keys of added objects that existed, and of other events without an add.
	violations []string
}

func (t *eventRecorder) handler() cache.ResourceEventHandler {
	record := func(obj any, wantExists, deleted bool) {
		if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
			obj = last.Obj
		}
		o := obj.(metav1.Object)
		key := o.GetNamespace() + "/" + o.GetName()
		t.mu.Lock()
		defer t.mu.Unlock()
		if _, exists := t.versions[key]; exists != wantExists {
			t.violations = append(t.violations, key)
		}
		if t.versions[key] = o.GetResourceVersion(); deleted {
			delete(t.versions, key)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { record(obj, false, false) },
		UpdateFunc: func(_, obj any) { record(obj, true, false) },
		DeleteFunc: func(obj any) { record(obj, true, true) },
	}
}

// traffic counts the requests and bytes of a process.
type traffic struct {
	// lists counts full lists and watch-lists.
	lists, bytes atomic.Int64
}

// counter counts requests and their answers.
type counter struct {
	http.RoundTripper
	*traffic
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	watches, initial := query.Has("watch"), query.Get("sendInitialEvents") == "true"
	if strings.Contains(r.URL.Path, "/thing") && (initial || !watches && query.Get("limit") != "1") {
		c.lists.Add(1)
	}
	response, err := c.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = countedBody{response.Body, c.traffic}
	}
	return response, err
}

func (c counter) WrappedRoundTripper() http.RoundTripper { return c.RoundTripper }

// countedBody counts the bytes of an answer.
type countedBody struct {
	io.ReadCloser
	*traffic
}

func (c countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Round(time.Millisecond)
}

// fixture has types on the server and a folder.
type fixture struct {
	*testing.T
	types     []schema.GroupVersionResource
	namespace string
	clients   []dynamic.ResourceInterface // by type
	dir       string
	// existing has the numbers of the existing objects. next is the next free number.
	existing []int
	next     int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	group, definitions := harness.Group(t), []*unstructured.Unstructured{}
	p := &fixture{T: t, dir: t.TempDir()}
	for n := range *types {
		name := fmt.Sprintf("Thing%d", n)
		definitions = append(definitions, harness.NewCRD(group, name))
		p.types = append(p.types, schema.GroupVersionResource{Group: group, Version: "v1",
			Resource: strings.ToLower(name) + "s"})
	}
	harness.InstallCRDs(t, definitions...)
	p.namespace = harness.Namespace(t)
	config := rest.CopyConfig(harness.Config(t))
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, gvr := range p.types {
		p.clients = append(p.clients, client.Resource(gvr).Namespace(p.namespace))
	}
	t.Cleanup(func() { // faster than the server after the deletion of a type
		p.delete(context.Background(), p.existing)
	})
	return p
}

func nameOf(number int) string { return fmt.Sprintf("thing-%05d", number) }

// client returns the client for the type of an object.
func (p *fixture) client(number int) dynamic.ResourceInterface {
	return p.clients[number%len(p.clients)]
}

func (p *fixture) newThing(number, round int) *unstructured.Unstructured {
	gvr, name := p.types[number%len(p.types)], nameOf(number)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gvr.GroupVersion().String(), "kind": fmt.Sprintf("Thing%d",
			number%len(p.types)), "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"round": int64(round), "secretName": name + "-tls", "dnsNames": []any{name + ".example.com",
				"www." + name + ".example.com"},
			"issuerRef": map[string]any{"name": "letsencrypt",
				"kind": "ClusterIssuer"}, "duration": "2160h", "usages": []any{"server auth", "client auth"},
		},
	}}
}

// inParallel calls do for each number, eight at a time.
func (p *fixture) inParallel(numbers []int, do func(number int) error) {
	p.Helper()
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for k := int(next.Add(1)) - 1; k < len(numbers); k = int(next.Add(1)) - 1 {
				if err := do(numbers[k]); err != nil {
					p.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	if p.Failed() {
		p.FailNow()
	}
}

func (p *fixture) create(count, round int) {
	p.Helper()
	var numbers []int
	for range count {
		numbers = append(numbers, p.next)
		p.next++
	}
	p.inParallel(numbers, func(number int) error {
		_, err := p.client(number).Create(p.Context(), p.newThing(number, round), metav1.CreateOptions{})
		return err
	})
	p.existing = append(p.existing, numbers...)
}

func (p *fixture) delete(ctx context.Context, numbers []int) {
	p.Helper()
	p.inParallel(numbers, func(number int) error {
		return p.client(number).Delete(ctx, nameOf(number),
			metav1.DeleteOptions{})
	})
}

// change makes count changes: mostly updates, a fifth deletions, and a fifth creations.
func (p *fixture) change(count, round int) {
	p.Helper()
	fifth := count / 5
	p.delete(p.Context(), p.existing[:fifth])
	p.existing = slices.Clone(p.existing[fifth:])
	p.inParallel(p.existing[:count-2*fifth], func(number int) error {
		patch := fmt.Appendf(nil, `{"spec":{"round":%d}}`, round)
		_, err := p.client(number).Patch(p.Context(), nameOf(number), apitypes.MergePatchType, patch,
			metav1.PatchOptions{})
		return err
	})
	p.create(fifth, round)
}

// TestResumeOnAnAPIServer restarts informers after no changes, after changes, after changes of other types,
// and after a compaction.
func TestResumeOnAnAPIServer(t *testing.T) {
	p := newFixture(t)
	p.create(*objects, 0)
	if o := p.runProcess("cold", nil); o.lists == 0 || o.resumed != 0 {
		t.Errorf("the first process: %+v, want lists and no resumed informers", o)
	}
	// Servers before 1.34 do not update an idle watch cache before they answer a list, so informers cannot
	// resume.
	resumable := harness.Has(t, harness.Since("1.34"))
	expectResumed := func(name string, whileSynced func(*process)) {
		t.Helper()
		if o := p.runProcess(name, whileSynced); resumable && (o.lists != 0 || o.resumed != len(p.types)) {
			t.Errorf("%s: %+v, want no lists and all informers resumed", name, o)
		}
	}
	expectResumed("nothing has changed", nil)
	p.change(*changes, 1)
	expectResumed("with changes", func(r *process) {
		p.create(*changes, 2)
		harness.Eventually(t, func(context.Context) error {
			if got, want := r.countObjects(), len(p.existing); got != want {
				return fmt.Errorf("there are %d objects, want %d", got, want)
			}
			return nil
		})
	})
	harness.Apply(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "other",
			"namespace": p.namespace},
	}})
	expectResumed("other types have changed", nil)

	p.change(*changes, 3)
	harness.Compact(t)
	harness.RestartAPIServer(t) // because its watch caches keep history, too
	if o := p.runProcess("compacted", nil); o.lists < len(p.types) || o.resumed != 0 {
		t.Errorf("after a compaction: %+v, want lists and no resumed informers", o)
	}
	expectResumed("after that", nil)
}
