package soak_test

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/test/integration/harness"
	"github.com/crdcache/crdcache/test/integration/internal/wallclock"
)

// pace is the time between two actions.
const pace = 250 * time.Millisecond

type fault struct {
	name string
	// begin starts the fault. end, if it is not nil, ends it some seconds later.
	begin func(w *fixture) (end func())
}

func allFaults() []fault {
	all := []fault{
		{"connections cut", func(w *fixture) func() { return w.proxy.Cut(w) }},
		{"connections broken at once", func(w *fixture) func() { w.proxy.Cut(w)(); return nil }},
		{"connections slow", func(w *fixture) func() {
			return w.proxy.AddToxic(w, "bandwidth", map[string]any{"rate": 50})
		}},
		{"answers late", func(w *fixture) func() {
			return w.proxy.AddToxic(w, "latency", map[string]any{"latency": 800, "jitter": 700})
		}},
		{"answers in small pieces", func(w *fixture) func() {
			return w.proxy.AddToxic(w, "slicer",
				map[string]any{"average_size": 64, "size_variation": 32, "delay": 100})
		}},
		{"requests unanswered on open connections", func(w *fixture) func() {
			return w.proxy.AddToxic(w, "timeout", map[string]any{"timeout": 0})
		}},
		{"connections reset", func(w *fixture) func() {
			return w.proxy.AddToxic(w, "reset_peer", map[string]any{"timeout": 500})
		}},
		{"connections end after 64 KiB", func(w *fixture) func() {
			return w.proxy.AddToxic(w, "limit_data", map[string]any{"bytes": 64 << 10})
		}},
		{"API server killed", func(w *fixture) func() {
			harness.KillAPIServer(w)
			return func() { harness.RestartWithin(w, "apiserver", patience) }
		}},
		{"API server killed while its connections stay open",
			func(w *fixture) func() { harness.RestartWithin(w, "apiserver", patience); return nil }},
		{"etcd restarted", func(w *fixture) func() { harness.RestartWithin(w, "etcd", patience); return nil }},
		{"history compacted and API server restarted", func(w *fixture) func() {
			harness.Compact(w)
			harness.RestartWithin(w, "apiserver", patience)
			return nil
		}},
		{"API server frozen", func(w *fixture) func() { return freezeAPIServer(w) }},
		{"this process frozen", func(w *fixture) func() { w.freezeProcess(); return nil }},
		{"memory short", func(*fixture) func() {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			debug.SetMemoryLimit(int64(stats.Sys-stats.HeapReleased) * 3 / 4)
			return func() { debug.SetMemoryLimit(math.MaxInt64) }
		}},
	}
	if wallclock.Available {
		all = append(all,
			fault{"clock an hour ahead", func(w *fixture) func() { return w.setClock(time.Hour) }},
			fault{"clock an hour back", func(w *fixture) func() { return w.setClock(-time.Hour) }},
			fault{"clock a day ahead", func(w *fixture) func() { return w.setClock(24 * time.Hour) }},
			// The server's certificate is not valid on that day.
			fault{"clock a day back", func(w *fixture) func() { return w.setClock(-24 * time.Hour) }},
		)
	}
	return all
}

// setClock changes the wall clock of this process. The returned function restores it. Ages must not depend on
// the wall clock.
func (w *fixture) setClock(ahead time.Duration) func() {
	w.Helper()
	set := func(ahead time.Duration) {
		wallclock.Set(ahead)
		for _, k := range w.kinds {
			for _, h := range k.informer.Handlers() {
				if age := time.Since(w.started); h.Lag > age {
					w.Errorf("with the clock %v ahead, an event of %s has waited for %v; the soak is %v old",
						ahead, h.Name, h.Lag, age)
				}
			}
		}
	}
	set(ahead)
	return func() { set(0) }
}

// freezeProcess suspends this process for the duration of a fault.
func (w *fixture) freezeProcess() {
	w.Helper()
	script := `kill -STOP "$1"; sleep "$2"; kill -CONT "$1"`
	command := exec.Command("sh", "-c", script, "freeze", strconv.Itoa(os.Getpid()),
		strconv.Itoa(w.randomSeconds()))
	if out, err := command.CombinedOutput(); err != nil {
		w.Errorf("stopping this process: %v: %s", err, out)
	}
}

// randomSeconds returns the duration of a fault: usually short, sometimes the maximum.
func (w *fixture) randomSeconds() int { return 1 + w.random.IntN(1+w.random.IntN(options.limit)) }

// injectFaults runs faults one after the other, and other disruptions.
func (w *fixture) injectFaults() {
	w.Helper()
	all := allFaults()
	for until := time.Now().Add(options.round); time.Now().Before(until); {
		f := all[w.random.IntN(len(all))]
		w.actions[f.name]++
		w.Logf("%s %s", time.Now().Format(time.TimeOnly), f.name)
		end := f.begin(w)
		if end != nil {
			w.churnInformers(time.Duration(w.randomSeconds()) * time.Second)
			end()
		}
		w.churnInformers(time.Duration(w.randomSeconds()) * time.Second / 2)
	}
}

// churnInformers acquires and releases informers, replaces indexes and blocks handlers for a while.
func (w *fixture) churnInformers(duration time.Duration) {
	w.Helper()
	for until := time.Now().Add(duration); time.Now().Before(until); time.Sleep(pace) {
		k := w.kinds[w.random.IntN(len(w.kinds))]
		switch n := w.random.IntN(10); {
		case n < 3:
			w.actions["handlers stalled or let go"]++
			w.witnesses[w.random.IntN(len(w.witnesses))].ToggleBlocking()
		case n < 5 && options.recreated > 0:
			w.actions["types created or deleted"]++
			w.toggleType(w.kinds[w.random.IntN(options.recreated)])
		case n < 7:
			w.actions["indexes replaced"]++
			w.reindex(k)
		case n < 9:
			w.actions["informers acquired and released"]++
			w.acquireTemporary(k)
		default:
			w.actions["factories made and shut down"]++
			w.startAndShutDown(k)
		}
	}
}

// reindex replaces the indexes of an informer by the other set.
func (w *fixture) reindex(k *kind) {
	w.Helper()
	previous := indexSet(k.index).Names()
	k.index = 1 - k.index
	if err := k.informer.AddIndexes(indexSet(k.index), previous...); err != nil {
		w.Error(err)
	}
}

// bucketIndex returns the name of the informer's current index.
func (k *kind) bucketIndex() string { return fmt.Sprintf("bucket%d", k.index) }

// startProxy starts a proxy between informers and the API server.
func startProxy(t testing.TB) harness.FaultProxy {
	t.Helper()
	server, err := url.Parse(harness.Config(t).Host)
	if err != nil {
		t.Fatal(err)
	}
	return harness.StartFaultProxy(t, server.Host)
}

// config returns a configuration that connects through the proxy.
func (w *fixture) config() *rest.Config {
	w.Helper()
	config := harness.Config(w)
	config.Host = "https://" + w.proxy.Address()
	return config
}

// freezeAPIServer suspends the API server. Its connections stay open. thaw resumes it, at the end of the test
// at the latest. Tests must not restart the server while it is suspended.
func freezeAPIServer(t testing.TB) (thaw func()) {
	t.Helper()
	pid := harness.APIServerPID(t)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	thaw = sync.OnceFunc(func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(thaw)
	return thaw
}

// requests counts the requests for full objects in all namespaces. Temporary informers send other requests.
type requests struct {
	resources map[string]bool

	mu struct {
		sync.Mutex
		requestCounts
	}
}

// requestCounts counts lists, watch-lists and watches, whether or not they were answered.
type requestCounts struct{ Lists, WatchLists, Watches int }

// countInitial counts the requests for all objects.
func (a requestCounts) countInitial() int { return a.Lists + a.WatchLists }

func countRequests(config *rest.Config, types []*kind) (*rest.Config, *requests) {
	r := &requests{resources: map[string]bool{}}
	for _, k := range types {
		r.resources[k.gvr.Resource] = true
	}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next: next, requests: r} })
	return config, r
}

func (r *requests) sent() requestCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.requestCounts
}

type counter struct {
	next     http.RoundTripper
	requests *requests
}

func (c counter) RoundTrip(request *http.Request) (*http.Response, error) {
	path := request.URL.Path
	temporary := strings.Contains(path, "/namespaces/") || strings.Contains(request.Header.Get("Accept"),
		"PartialObjectMetadata")
	if request.Method == http.MethodGet && !temporary &&
		c.requests.resources[path[strings.LastIndex(path, "/")+1:]] {
		query := request.URL.Query()
		c.requests.mu.Lock()
		switch {
		case query.Get("watch") != "true" && query.Get("watch") != "1":
			if query.Get("continue") == "" { // further pages belong to the same list
				c.requests.mu.Lists++
			}
		case query.Get("sendInitialEvents") == "true":
			c.requests.mu.WatchLists++
		default:
			c.requests.mu.Watches++
		}
		c.requests.mu.Unlock()
	}
	return c.next.RoundTrip(request)
}

// WrappedRoundTripper implements net.RoundTripperWrapper for client-go.
func (c counter) WrappedRoundTripper() http.RoundTripper { return c.next }

// goroutineStacks counts the goroutines by their functions. It ignores the fault proxy, which leaks
// goroutines of broken connections.
func goroutineStacks(t testing.TB) map[string]int {
	t.Helper()
	var text strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		t.Fatal(err)
	}
	return countStacks(text.String())
}

var (
	stackPattern   = regexp.MustCompile(`(?ms)^(\d+) @[^\n]*\n(.*)`)
	addressPattern = regexp.MustCompile(`0x[0-9a-f]+\s*`)
)

// internedStacks interns the stacks of all measurements, which would otherwise count as growth of the heap.
var internedStacks = map[string]string{}

func intern(stack string) string {
	if interned, found := internedStacks[stack]; found {
		return interned
	}
	internedStacks[stack] = stack
	return stack
}

// countStacks parses a goroutine profile in text form.
func countStacks(profile string) map[string]int {
	counts := map[string]int{}
	for entry := range strings.SplitSeq(profile, "\n\n") {
		found := stackPattern.FindStringSubmatch(entry)
		if found == nil || strings.Contains(entry, "Shopify/toxiproxy") {
			continue
		}
		if n, err := strconv.Atoi(found[1]); err == nil { // the expression matches digits
			counts[intern(addressPattern.ReplaceAllString(found[2], ""))] += n
		}
	}
	return counts
}

// logMoreGoroutines logs the stacks of which there are more goroutines than before.
func logMoreGoroutines(t testing.TB, before, after map[string]int) {
	t.Helper()
	for stack, n := range after {
		if more := n - before[stack]; more > 1 {
			t.Logf("%d more goroutines in\n%s", more, stack)
		}
	}
}
