package crdcached_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/test/integration/harness"
)

var (
	loadObjects  = flag.Int("load-objects", 100, "the number of objects of TestLoad")
	loadWatchers = flag.Int("load-watchers", 10, "the number of watches of TestLoad")
	loadUpdates  = flag.Int("load-updates", 100, "the number of changes in each phase of TestLoad")
	loadRate     = flag.Int("load-rate", 200, "the maximum number of changes per second")
	loadLists    = flag.Int("load-lists", 1, "the number of times that TestLoad lists all objects")
	loadDocument = flag.String("load-document", "", "the document in which the section \"Load\" is replaced; empty means none")
)

// loadConfig lifts the limits per user, because the test has only one user.
const loadConfig = `
types: ["*.example.com"]
limits: {requests: 0, watches: 0, totalWatches: 0, connections: 0, bytesPerSecond: 0, burstBytes: 0}
`

// TestLoad measures the cost of watches and lists for the API server and crdcached, and logs both. make load
// runs it with large numbers. The test itself checks that all events arrive.
func TestLoad(t *testing.T) {
	harness.InstallCRDs(t, harness.NewCRD("example.com", "Widget"))
	l := &load{T: t, gvr: schema.GroupVersionResource{Group: "example.com", Version: "v1",
		Resource: "widgets"}, namespace: harness.Namespace(t)}
	l.fill()
	s := harness.StartCrdcachedIn(t, crdcachedKubeconfig(t), loadConfig)
	cluster := harness.Config(t)
	servers := []measuredServer{
		{"kube-apiserver", cluster, harness.APIServerPID(t)}, {"crdcached", s.As(cluster), s.PID()},
	}
	l.addRow("memory with the objects in it, before any read", "MiB",
		float64(memoryOf(t, servers[0].pid)>>20), float64(memoryOf(t, servers[1].pid)>>20))
	for _, version := range []string{"", "0"} {
		for _, compressed := range []bool{false, true} {
			var used []float64
			for _, server := range servers {
				used = append(used, l.measureList(server, version, compressed))
			}
			l.addRow(listName(version, compressed), "ms", used...)
		}
	}
	var events, memory []float64
	for _, server := range servers {
		event, watch := l.measureWatches(server, *loadWatchers, l.measureChanges(server, 0).used)
		events, memory = append(events, event), append(memory, watch)
	}
	l.addRow("1,000 events", "ms", events...)
	l.addRow("memory of a watch", "KiB", memory...)
	l.writeReport()
}

func listName(version string, compressed bool) string {
	name := "LIST of all, most recent"
	if version != "" {
		name = "LIST of all with `resourceVersion=" + version + "`"
	}
	if compressed {
		name += ", the client accepts gzip"
	}
	return name
}

// measuredServer is a server with measurements of its process.
type measuredServer struct {
	name   string
	config *rest.Config
	pid    int
}

type load struct {
	*testing.T
	gvr       schema.GroupVersionResource
	namespace string
	size      int64 // of a list, in bytes
	rates     []string
	rows      []string
}

// addRow adds figures of kube-apiserver and of crdcached.
func (l *load) addRow(measurement, unit string, figures ...float64) {
	times := "" // empty if the second figure is not positive, because of noise
	if figures[0] > 0 && figures[1] > 0 {
		times = fmt.Sprintf("%.1f ×", figures[0]/figures[1])
	}
	cells := make([]string, len(figures))
	for i, figure := range figures {
		if cells[i] = "below noise"; figure > 0 {
			cells[i] = fmt.Sprintf("%.4g %s", figure, unit)
		}
	}
	l.rows = append(l.rows, fmt.Sprintf("| %s | %s | %s |", measurement, strings.Join(cells, " | "), times))
}

// writeReport logs all figures and the other load of the machine, and writes them to the document.
func (l *load) writeReport() {
	l.Helper()
	busy, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		l.Fatal(err)
	}
	text := fmt.Sprintf("%d objects, %d MB as a list; %d watches by one client, %d changes at %s a second (target %d); %d processors, load %s at the end.\n\n",
		*loadObjects, l.size/1e6, *loadWatchers, *loadUpdates, strings.Join(l.rates,
			" and "), *loadRate, runtime.NumCPU(), strings.Fields(string(busy))[0])
	text += "| | kube-apiserver | crdcached | less by |\n|---|--:|--:|--:|\n" +
		strings.Join(l.rows, "\n") + "\n"
	l.Logf("\n%s", text)
	if *loadDocument == "" {
		return
	}
	if err := harness.WriteSection(*loadDocument, "Load", text); err != nil {
		l.Error(err)
	}
}

// fill creates objects of about 1.4 KB. The test's cleanup deletes them.
func (l *load) fill() {
	l.Helper()
	objects := adminClient(l.T).Resource(l.gvr).Namespace(l.namespace)
	l.Cleanup(func() { // deleting the definition would be slow for many objects
		inParallel(*loadObjects, func(i int) error {
			return objects.Delete(context.Background(), nameOf(i), metav1.DeleteOptions{})
		}, l.Error)
	})
	inParallel(*loadObjects, func(i int) error {
		o := newObject(l.gvr, nameOf(i), "0")
		o.Object["spec"] = map[string]any{"text": strings.Repeat(nameOf(i)+" ", 140)}
		_, err := objects.Create(l.Context(), o, metav1.CreateOptions{})
		return err
	}, l.Error)
}

func nameOf(i int) string { return fmt.Sprintf("w%06d", i) }

// inParallel calls do the given number of times, until one call fails.
func inParallel(times int, do func(i int) error, onError func(...any)) {
	var next atomic.Int64
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() { // ends with the last call
			for i := next.Add(1); i <= int64(times); i = next.Add(1) {
				if err := do(int(i)); err != nil {
					onError(err)
					return
				}
			}
		})
	}
	workers.Wait()
}

// measureList lists all objects and returns the server's CPU time in milliseconds.
func (l *load) measureList(server measuredServer, version string, compressed bool) float64 {
	l.Helper()
	config := rest.CopyConfig(server.config)
	config.DisableCompression = !compressed
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		l.Fatal(err)
	}
	l.size = l.download(client, config, version) // the first list fills caches for lists
	begin := cpuOf(l.T, server.pid)
	for range *loadLists {
		l.download(client, config, version)
	}
	return milliseconds(cpuOf(l.T, server.pid)-begin) / float64(*loadLists)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (l *load) download(client *http.Client, config *rest.Config, version string) (size int64) {
	l.Helper()
	got, err := client.Get(config.Host + "/apis/example.com/v1/widgets?resourceVersion=" + version)
	if err != nil {
		l.Fatal(err)
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		l.Fatalf("the list is answered with %s", got.Status)
	}
	if size, err = io.Copy(io.Discard, got.Body); err != nil {
		l.Fatal(err)
	}
	return size
}

// measureWatches changes objects while a server has watches. It returns the CPU time for 1,000 events in
// milliseconds, minus baseline, the cost without watches, and the memory for a watch in KiB.
func (l *load) measureWatches(server measuredServer, watchers int,
	baseline time.Duration) (event, watch float64) {
	l.Helper()
	before := memoryOf(l.T, server.pid)
	with := l.measureChanges(server, watchers)
	l.rates = append(l.rates, fmt.Sprintf("%.0f", float64(*loadUpdates)/with.lasted.Seconds()))
	received := float64(watchers * *loadUpdates)
	return milliseconds(with.used-baseline) * 1000 / received,
		float64(memoryOf(l.T, server.pid)-before) / 1024 / float64(watchers)
}

type changeCost struct{ used, lasted time.Duration }

// measureChanges writes objects and waits until all watches have received the changes. It returns the
// server's CPU time and the duration.
func (l *load) measureChanges(server measuredServer, watchers int) changeCost {
	l.Helper()
	client, err := rest.HTTPClientFor(server.config)
	if err != nil {
		l.Fatal(err)
	}
	list, err := adminClient(l.T).Resource(l.gvr).List(l.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		l.Fatal(err)
	}
	path := server.config.Host +
		"/apis/example.com/v1/widgets?watch=true&timeoutSeconds=3600&resourceVersion=" +
		list.GetResourceVersion()
	ctx, cancel := context.WithCancel(l.Context())
	defer cancel()
	var opened, readers sync.WaitGroup
	var lost atomic.Int64
	for range watchers {
		opened.Add(1)
		readers.Go(func() { // ends with the last change or cancel
			lost.Add(int64(*loadUpdates - countEvents(ctx, client, path, *loadUpdates, opened.Done)))
		})
	}
	opened.Wait()
	begin, start := cpuOf(l.T, server.pid), time.Now()
	l.writeChanges(ctx)
	lasted := time.Since(start)
	readers.Wait()
	if lost.Load() != 0 {
		l.Errorf("%s did not send %d changes", server.name, lost.Load())
	}
	return changeCost{cpuOf(l.T, server.pid) - begin, lasted}
}

// writeChanges writes objects at the configured rate, or as fast as the cluster can.
func (l *load) writeChanges(ctx context.Context) {
	l.Helper()
	objects := adminClient(l.T).Resource(l.gvr).Namespace(l.namespace)
	ticks := time.NewTicker(time.Second / time.Duration(*loadRate))
	defer ticks.Stop()
	inParallel(*loadUpdates, func(i int) error {
		<-ticks.C
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"value":"%d-%d"}}}`, time.Now().UnixNano(), i)
		_, err := objects.Patch(ctx, nameOf(1+i%*loadObjects), types.MergePatchType, patch,
			metav1.PatchOptions{})
		return err
	}, l.Error)
}

// countEvents reads a watch until it has received the given number of events. It calls onOpen when the watch
// has started, and returns the number of received events.
func countEvents(ctx context.Context, client *http.Client, path string, events int,
	onOpen func()) (received int) {
	begin := sync.OnceFunc(onOpen)
	defer begin()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return 0
	}
	got, err := client.Do(r)
	if err != nil {
		return 0
	}
	defer got.Body.Close()
	begin()
	lines := bufio.NewReaderSize(got.Body, 4096)
	for received < events {
		_, more, err := lines.ReadLine()
		if err != nil {
			return received
		}
		if !more {
			received++
		}
	}
	return received
}

// tick is the kernel's unit of CPU time.
const tick = time.Second / 100

func cpuOf(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(t, err)
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	must(t, err)
	system, err := strconv.Atoi(fields[12])
	must(t, err)
	return time.Duration(user+system) * tick
}
