package soak_test

import (
	"fmt"
	"math"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
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
			return w.proxy.AddToxic(w, "bandwidth",
				map[string]any{"rate": 50})
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
			return w.proxy.AddToxic(w, "reset_peer",
				map[string]any{"timeout": 500})
		}},
		{"connections end after 64 KiB", func(w *fixture) func() {
			return w.proxy.AddToxic(w, "limit_data",
				map[string]any{"bytes": 64 << 10})
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
func (w *fixture) randomSeconds() int {
	return 1 + w.random.IntN(1+w.random.IntN(options.limit))
}

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
