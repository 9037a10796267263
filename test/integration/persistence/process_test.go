package persistence_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
