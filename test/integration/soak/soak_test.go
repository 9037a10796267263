package soak_test

import (
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
