package disk

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/readapi/testcluster"
)

// These constants are the load of a round of BenchmarkDelivery.
const (
	deliveredObjects = 20_000
	deliveryRate     = 5_000 // events in a second
	deliveredEvents  = 10 * deliveryRate
	readTogether     = 5
)

// BenchmarkDelivery delivers events to a handler with and without persistence, alternately. -benchtime=10x
// runs ten rounds of each. It measures the CPU time of the two goroutines that process events, each on a
// thread of its own: one reads the watch and changes the cache, one calls the handler. The server's time is
// excluded. The CPU time of saving is reported separately.
func BenchmarkDelivery(b *testing.B) {
	cluster, err := testcluster.New(b.Context(), testcluster.Options{})
	if err != nil {
		b.Fatal(err)
	}
	var off, on []eventCost
	for round := 0; b.Loop(); round++ {
		if round%2 == 0 {
			off = append(off, deliver(b, cluster, ""))
			on = append(on, deliver(b, cluster, b.TempDir()))
		} else {
			on = append(on, deliver(b, cluster, b.TempDir()))
			off = append(off, deliver(b, cluster, ""))
		}
		b.Logf("off %+v\non  %+v", off[round], on[round])
	}
	var ratios []float64
	for k := range off {
		ratios = append(ratios, on[k].path()/off[k].path())
	}
	slices.Sort(ratios)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(medianOf(off, eventCost.path), "off-µs/event")
	b.ReportMetric(medianOf(on, eventCost.path), "on-µs/event")
	b.ReportMetric(ratios[len(ratios)/2], "on/off")
	b.ReportMetric(ratios[0], "on/off-min")
	b.ReportMetric(ratios[len(ratios)-1], "on/off-max")
	b.ReportMetric(slices.MinFunc(off, byPath).path(), "off-min-µs/event")
	b.ReportMetric(slices.MinFunc(on, byPath).path(), "on-min-µs/event")
	b.ReportMetric(medianOf(off, func(d eventCost) float64 { return d.others }), "off-others-µs/event")
	b.ReportMetric(medianOf(on, func(d eventCost) float64 { return d.others }), "on-others-µs/event")
	b.ReportMetric(medianOf(off, func(d eventCost) float64 { return d.latency }), "off-latency-µs")
	b.ReportMetric(medianOf(on, func(d eventCost) float64 { return d.latency }), "on-latency-µs")
}

// eventCost is the CPU time per event, and the median latency from the server to the handler, in
// microseconds. others is the CPU time of the rest of the process, for saving and garbage collection.
type eventCost struct{ reading, handling, others, latency float64 }

func (d eventCost) path() float64 { return d.reading + d.handling }

func byPath(a, b eventCost) int { return cmp.Compare(a.path(), b.path()) }

func medianOf(all []eventCost, figure func(eventCost) float64) float64 {
	figures := make([]float64, 0, len(all))
	for _, d := range all {
		figures = append(figures, figure(d))
	}
	slices.Sort(figures)
	return figures[len(figures)/2]
}

// deliver runs one round. It persists to folder, unless that is empty.
func deliver(b *testing.B, cluster *testcluster.Cluster, folder string) eventCost {
	feed := newFeed(deliveredObjects)
	config := cluster.Config()
	config.Wrap(func(others http.RoundTripper) http.RoundTripper { return feedTransport{feed, others} })
	options := dynamicinformer.Options{Config: config}
	if folder != "" {
		kept := New(folder, Options{})
		defer func() {
			if err := kept.Close(); err != nil {
				b.Error(err)
			}
		}()
		options.Persistence = kept
	}
	factory, err := dynamicinformer.New(options)
	if err != nil {
		b.Fatal(err)
	}
	informer, err := factory.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps"))
	if err != nil {
		b.Fatal(err)
	}
	handler := &deliveryHandler{feed: feed, done: make(chan struct{})}
	if _, err := informer.AddEventHandler(
		dynamicinformer.EveryEvent(dynamicinformer.MetadataOnly(handler))); err != nil {
		b.Fatal(err)
	}
	if err := factory.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := factory.WaitForSync(b.Context()); err != nil {
		b.Fatal(err)
	}
	for folder != "" && informer.Persistence().Saves == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	runtime.GC()
	before := processTime(b)
	close(feed.begin)
	<-handler.done
	<-feed.end
	d := eventCost{reading: microseconds(feed.processingCPU), handling: microseconds(handler.processingCPU),
		latency: handler.latency()}
	d.others = microseconds(processTime(b)-before-feed.goroutineCPU) - d.handling
	if err := factory.Shutdown(context.Background()); err != nil {
		b.Error(err)
	}
	if informer.Snapshot().Len() != deliveredObjects {
		b.Errorf("the cache has %d objects", informer.Snapshot().Len())
	}
	return d
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / deliveredEvents }

func processTime(b *testing.B) time.Duration {
	used, err := testkit.CPUTime()
	if err != nil {
		b.Fatal(err)
	}
	return used
}

func threadTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// deliveryHandler reads the name of each object.
type deliveryHandler struct {
	feed          *feed
	events        int
	began         time.Duration
	processingCPU time.Duration
	durations     [deliveredEvents]time.Duration
	done          chan struct{}
}

func (*deliveryHandler) OnAdd(any, bool) {}
func (*deliveryHandler) OnDelete(any)    {}

func (h *deliveryHandler) OnUpdate(_, next any) {
	if next.(metav1.Object).GetName() == "" || h.events == deliveredEvents {
		panic("not what was expected")
	}
	if h.events == 0 {
		runtime.LockOSThread() // until the goroutine ends
		h.began = threadTime()
	}
	h.durations[h.events] = time.Since(h.feed.sentAt[h.events])
	if h.events++; h.events == deliveredEvents {
		h.processingCPU = threadTime() - h.began
		close(h.done)
	}
}

// latency returns the median latency in microseconds.
func (h *deliveryHandler) latency() float64 {
	slices.Sort(h.durations[:])
	return float64(h.durations[deliveredEvents/2].Nanoseconds()) / 1e3
}

// feed is an API server's list and watch of objects that change in turn.
type feed struct {
	objects    int
	begin, end chan struct{}
	// sentAt has the time when each event was sent. processingCPU is the CPU time of processing events on
	// the goroutine that reads the watch.
	sentAt        [deliveredEvents]time.Time
	processingCPU time.Duration
	// goroutineCPU is the total CPU time of that goroutine.
	goroutineCPU time.Duration
}

func newFeed(objects int) *feed {
	return &feed{objects: objects, begin: make(chan struct{}), end: make(chan struct{})}
}

// object returns a version of an object; all have the same length.
func (*feed) object(to []byte, n, version int) []byte {
	return fmt.Appendf(to, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"annotations":{"example.com/owner":"team-%02[2]d@example.com"},"creationTimestamp":"2026-11-20T10:10:00Z","labels":{"app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"app-%02[2]d"},"name":"settings-%05[1]d","namespace":"tenant-%02[2]d","resourceVersion":"%09[3]d","uid":"5f0c1c6e-7d21-4a8e-9d0b-%012[1]d"},"data":{"hosts":"host-%05[1]d.tenant-%02[2]d.apps.example.com, www.host-%05[1]d.tenant-%02[2]d.apps.example.com","message":"%[4]s","seen":"%09[3]d"}}`,
		n, n%100, 100_000_000+
			version, strings.Repeat("Certificate is up to date and has not expired. ", 20))
}

// feedTransport answers for the feed, and forwards other requests.
type feedTransport struct {
	*feed
	others http.RoundTripper
}

func (t feedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	answer := &http.Response{
		StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Request: r, ContentLength: -1,
	}
	switch {
	case !strings.HasSuffix(r.URL.Path, "/configmaps"):
		return t.others.RoundTrip(r)
	case query.Get("sendInitialEvents") != "": // as servers without watch-lists respond
		answer.StatusCode, answer.Body = http.StatusUnprocessableEntity, http.NoBody
	case query.Get("watch") != "":
		answer.Body = &feedBody{feed: t.feed, ended: make(chan struct{})}
	default:
		list := []byte(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"100000000"},"items":[`)
		count := t.objects
		if query.Get("limit") == "1" { // a request for the resource version
			count = 1
		}
		for n := range count {
			if n > 0 {
				list = append(list, ',')
			}
			list = t.object(list, n, 0)
		}
		answer.Body = io.NopCloser(bytes.NewReader(append(list, "]}"...)))
	}
	return answer, nil
}

// feedBody is the body of a watch, read by one goroutine.
type feedBody struct {
	*feed
	began time.Time
	next  int // number of the next event
	// text is unread text, room its buffer.
	text, room []byte
	// lastReturn is threadTime at the return of the last Read.
	lastReturn time.Duration
	counts     bool
	ending     sync.Once
	ended      chan struct{}
}

var errWatchEnded = errors.New("the watch has been closed")

func (f *feedBody) Close() error {
	f.ending.Do(func() { close(f.ended) })
	return nil
}

func (f *feedBody) Read(to []byte) (int, error) {
	if f.began.IsZero() {
		select {
		case <-f.begin:
		case <-f.ended:
			return 0, errWatchEnded
		}
		runtime.LockOSThread() // until the goroutine ends
		f.began = time.Now()
		f.goroutineCPU = -threadTime()
	} else if f.counts {
		f.processingCPU += threadTime() - f.lastReturn
	}
	if len(f.text) == 0 && !f.make() {
		f.goroutineCPU += threadTime()
		close(f.end)
		<-f.ended
		return 0, errWatchEnded
	}
	n := copy(to, f.text)
	f.text, f.counts = f.text[n:], true
	f.lastReturn = threadTime()
	return n, nil
}

// make creates the text of the next events when they are due. The number per call is constant, even if it
// is late, because batches are cheaper. It returns false after the last event.
func (f *feedBody) make() bool {
	if f.next == deliveredEvents {
		return false
	}
	for time.Since(f.began) < time.Duration(f.next+readTogether)*time.Second/deliveryRate {
		time.Sleep(time.Millisecond / 2)
	}
	f.text = f.room[:0]
	now := time.Now()
	for range readTogether {
		f.text = append(f.object(append(f.text, `{"type":"MODIFIED","object":`...), f.next%f.objects,
			1+f.next), "}\n"...)
		f.sentAt[f.next] = now
		f.next++
	}
	f.room = f.text
	return true
}
