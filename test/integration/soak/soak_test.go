package soak_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crdcache/crdcache/test/integration/harness"
	"github.com/crdcache/crdcache/test/integration/internal/wallclock"
)

func TestSoak(t *testing.T) {
	seed := options.seed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	t.Logf("the seed is %d", seed)
	if !wallclock.Available {
		t.Log("clocks don't jump in this build: see test/integration/internal/wallclock")
	}
	w := newFixture(t, seed)
	w.awaitAgreement()
	w.outcomes = nil // the first lists were not disturbed by faults
	began := time.Now()
	first, theirs := w.crdcacheRequests.sent(), w.clientGoRequests.sent()
	for round := uint64(1); round == 1 || time.Since(began) < options.duration; round++ {
		stop := w.startWriting(seed + round)
		w.injectFaults()
		stop()
		w.awaitAgreement()
		m := measure(t, time.Since(began))
		w.measurements = append(w.measurements, m)
		o := w.outcomes[len(w.outcomes)-1]
		t.Logf(
			"%s round %d: %.1f MiB live, %d goroutines, %d files; all caches agreed after %.1f s, the shared types after %.1f s, client-go's after %.1f s; sent %+v, client-go %+v",
			time.Now().Format(time.TimeOnly), round, m.Heap/(1<<20), m.Goroutines, m.Files, o.All.
				Seconds(), o.Ours.Seconds(), o.Theirs.Seconds(), w.crdcacheRequests.sent(),
			w.clientGoRequests.sent())
	}
	if len(w.measurements) >= minMeasurements {
		growthOf(w.measurements).check(t)
	}
	if t.Failed() {
		logMoreGoroutines(t, w.measurements[len(w.measurements)/4].stacks,
			w.measurements[len(w.measurements)-1].stacks)
	}
	// Faults must not cause a storm of lists. Some more lists than client-go's are permitted.
	ours := w.crdcacheRequests.sent().countInitial() - first.countInitial()
	stock := w.clientGoRequests.sent().countInitial() - theirs.countInitial()
	if ours > 2*stock+5*options.stock {
		t.Errorf("%d lists were sent for %d types, want at most %d; client-go sent %d", ours, options.stock,
			2*stock+5*options.stock, stock)
	}
	if options.document != "" && !t.Failed() {
		if err := harness.WriteSection(options.document, "Soak",
			w.reportSection(seed, time.Since(began))); err != nil {
			t.Error(err)
		}
	}
}

// minMeasurements is the number of measurements from which growth is checked. The first quarter is ignored,
// because it includes one-time costs.
const minMeasurements = 12

// measurement has the heap, the goroutines and the open files of the idle process. stacks counts the
// goroutines with each stack.
type measurement struct {
	At                time.Duration
	Heap              float64
	Goroutines, Files int
	stacks            map[string]int
}

// measure measures the process. It includes resources that are being closed, because they average out.
func measure(t testing.TB, at time.Duration) measurement {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	// The second collection frees memory that finalizers and pools retained during the first.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	m := measurement{At: at, Heap: float64(stats.HeapAlloc), Files: len(files), stacks: goroutineStacks(t)}
	for _, n := range m.stacks {
		m.Goroutines += n
	}
	if options.heaps != "" {
		writeHeap(t, filepath.Join(options.heaps, fmt.Sprintf("heap-%.0fs.pprof", at.Seconds())))
	}
	return m
}

// writeHeap writes a heap profile. go tool pprof -base compares it with an earlier one.
func writeHeap(t testing.TB, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(pprof.Lookup("heap").WriteTo(file, 0), file.Close()); err != nil {
		t.Error(err)
	}
}

// trend is a line through measurements.
type trend struct {
	// Mean is the middle of the line. Growth is its rise from the first to the last measurement, with the
	// standard error Deviation.
	Mean, Growth, Deviation float64
}

// fitTrend fits a line by least squares.
func fitTrend(at, values []float64) trend {
	n := float64(len(at))
	var meanAt, mean float64
	for i := range at {
		meanAt, mean = meanAt+at[i]/n, mean+values[i]/n
	}
	var square, product float64
	for i := range at {
		square, product = square+(at[i]-meanAt)*(at[i]-meanAt), product+(at[i]-meanAt)*(values[i]-mean)
	}
	slope := product / square
	var residual float64
	for i := range at {
		deviation := values[i] - mean - slope*(at[i]-meanAt)
		residual += deviation * deviation
	}
	span := at[len(at)-1] - at[0]
	return trend{Mean: mean, Growth: slope * span, Deviation: math.Sqrt(residual/(n-2)/square) * span}
}

// grows reports whether the growth exceeds both noise and a negligible amount.
func (t trend) grows(negligible float64) bool {
	return t.Growth > negligible && t.Growth > 3*t.Deviation
}

// growth has the trends of the checked resources.
type growth struct{ heap, goroutines, files trend }

// growthOf returns the trends of the measurements without their first quarter.
func growthOf(measurements []measurement) growth {
	measurements = measurements[len(measurements)/4:]
	of := func(value func(measurement) float64) trend {
		var at, values []float64
		for _, m := range measurements {
			at, values = append(at, m.At.Hours()), append(values, value(m))
		}
		return fitTrend(at, values)
	}
	return growth{
		heap:       of(func(m measurement) float64 { return m.Heap }),
		goroutines: of(func(m measurement) float64 { return float64(m.Goroutines) }),
		files:      of(func(m measurement) float64 { return float64(m.Files) }),
	}
}

// check fails the test if the heap grows by more than 5 % and 2 MiB, or another resource by more than 10.
func (g growth) check(t testing.TB) {
	t.Helper()
	if g.heap.grows(0.05*g.heap.Mean + 2<<20) {
		t.Errorf("the live heap grows: %+v", g.heap)
	}
	if g.goroutines.grows(10) {
		t.Errorf("the number of goroutines grows: %+v", g.goroutines)
	}
	if g.files.grows(10) {
		t.Errorf("the number of open files grows: %+v", g.files)
	}
}

// reportSection returns the results of a run for docs/reliability.md.
func (w *fixture) reportSection(seed uint64, duration time.Duration) string {
	var text strings.Builder
	fmt.Fprintf(&text, `%s, %s, %d processors, seed %d; %d types (%d are created and deleted), %d objects, %d updates a second, %d handlers;
%d rounds of %s of faults, each up to %d s. The server accepted %d writes; %d failed or got no answer.

`, duration.Round(time.Minute), runtime.Version(), runtime.NumCPU(), seed,
		options.types, options.recreated, options.objects, options.updates, options.handlers,
		len(w.measurements), options.round, options.limit, w.written.done.Load(), w.written.failed.Load())
	w.writeComparison(&text)
	var faults []string
	for _, name := range slices.Sorted(maps.Keys(w.actions)) {
		faults = append(faults, fmt.Sprintf("%s (%d)", name, w.actions[name]))
	}
	fmt.Fprintf(&text, "\nFaults and changes: %s.\n", strings.Join(faults, "; "))
	w.writeGrowth(&text)
	return text.String()
}

// writeComparison writes the table of crdcache and client-go under the same faults.
func (w *fixture) writeComparison(text *strings.Builder) {
	ours, theirs := w.crdcacheRequests.sent(), w.clientGoRequests.sent()
	of := func(value func(agreementTimes) time.Duration) (median, longest float64) {
		var all []float64
		for _, o := range w.outcomes {
			all = append(all, value(o).Seconds())
		}
		slices.Sort(all)
		return all[len(all)/2], all[len(all)-1]
	}
	allMedian, allLongest := of(func(o agreementTimes) time.Duration { return o.All })
	oursMedian, oursLongest := of(func(o agreementTimes) time.Duration { return o.Ours })
	theirsMedian, theirsLongest := of(func(o agreementTimes) time.Duration { return o.Theirs })
	ourEvents, ourRepeats := countEvents(w.witnesses)
	theirEvents, theirRepeats := countEvents(w.clientGoWitnesses)
	fmt.Fprintf(text, `| | crdcache | client-go |
|---|--:|--:|
| types | %d | %d |
| seconds after the faults until all caches and states equal the server, median (longest) | %.1f (%.1f) | |
| seconds until the caches of the %d shared types do | %.1f (%.1f) | %.1f (%.1f) |
| lists of the %d shared types | %d | %d |
| watch-lists of these | %d | %d |
| watches of these | %d | %d |
| delivered events (repeats of a version) | %d (%d) | %d (%d) |
| inconsistent events, such as an update with another UID | 0 | %d |
`, options.types, options.stock, allMedian, allLongest,
		options.stock, oursMedian, oursLongest, theirsMedian, theirsLongest, options.stock,
		ours.Lists, theirs.Lists, ours.WatchLists, theirs.WatchLists, ours.Watches, theirs.Watches,
		ourEvents, ourRepeats, theirEvents, theirRepeats, w.clientGoInconsistencies)
}

// countEvents returns the numbers of all events and of repeated versions.
func countEvents(handlers []*handler) (events, repeats int) {
	for _, h := range handlers {
		c := h.Counts()
		events, repeats = events+c.Events, repeats+c.Repeats
	}
	return events, repeats
}

// writeGrowth writes the growth of the process, which runs all informers, over the rounds.
func (w *fixture) writeGrowth(text *strings.Builder) {
	if len(w.measurements) >= minMeasurements {
		g := growthOf(w.measurements)
		text.WriteString("\n| after each round | mean | growth over the run without its first quarter | standard error |\n|---|--:|--:|--:|\n")
		fmt.Fprintf(text, "| live heap, MiB | %.1f | %+.2f | %.2f |\n", g.heap.Mean/(1<<20),
			g.heap.Growth/(1<<20), g.heap.Deviation/(1<<20))
		fmt.Fprintf(text, "| goroutines | %.0f | %+.1f | %.1f |\n", g.goroutines.Mean, g.goroutines.Growth,
			g.goroutines.Deviation)
		fmt.Fprintf(text, "| open files | %.0f | %+.1f | %.1f |\n", g.files.Mean, g.files.Growth,
			g.files.Deviation)
	}
}
