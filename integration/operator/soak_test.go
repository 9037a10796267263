package operator_test

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/integration/harness"
)

const (
	// soakWorkloads is the number of workloads in a round.
	soakWorkloads = 40
	// minCheckedRounds is the number of rounds from which the growth of memory is checked.
	minCheckedRounds = 12
	// spareGoroutines is the permitted increase over the first round, for idle connections.
	spareGoroutines = 10
	// heapGrowth is the permitted growth of the heap between early and late rounds.
	heapGrowth = 1.1
	// spareHeap is the growth in bytes that is permitted in addition.
	spareHeap = 2 << 20
)

// TestSoak runs the operator for a long time (-args -duration=30m) while workloads and types are created and
// deleted and the API server restarts. After each round, memory and goroutines must not exceed their values
// at the beginning.
func TestSoak(t *testing.T) {
	install(t, "environments", "releases")
	s := newFixture(t)
	o := s.startOperator()
	until := time.Now().Add(*duration)
	var heaps []float64
	goroutines := 0
	for round := 1; round <= 2 || time.Now().Before(until); round++ {
		if !t.Run("round "+strconv.Itoa(round), func(t *testing.T) { s.forSubtest(t).runRound(round) }) {
			return
		}
		if round == 1 {
			goroutines = runtime.NumGoroutine()
		}
		harness.Eventually(t, func(context.Context) error {
			if now := runtime.NumGoroutine(); now > goroutines+spareGoroutines {
				return fmt.Errorf("there are %d goroutines, and after the first round there were %d",
					now, goroutines)
			}
			return nil
		})
		heaps = append(heaps, liveHeap())
		t.Logf("round %d at %s: %.1f MiB live, %d goroutines", round, time.Now().Format(time.TimeOnly),
			heaps[len(heaps)-1]/(1<<20), runtime.NumGoroutine())
	}
	o.stop()
	if len(heaps) >= minCheckedRounds {
		quarter := len(heaps) / 4
		early, late := median(heaps[quarter:2*quarter]), median(heaps[len(heaps)-quarter:])
		t.Logf("%d rounds; %.1f MiB live early, %.1f MiB late", len(heaps), early/(1<<20), late/(1<<20))
		if late > early*heapGrowth+spareHeap {
			t.Errorf("the live heap grew to %.0f bytes in the last quarter of the rounds, from %.0f in the second",
				late, early)
		}
	}
}

func (s *fixture) forSubtest(t testing.TB) *fixture {
	return &fixture{TB: t, Client: s.Client, namespace: s.namespace}
}

// runRound runs one round and cleans up. It deletes all types except environments.
func (s *fixture) runRound(runRound int) {
	s.Helper()
	install(s, "workloads")
	names := make([]string, soakWorkloads)
	for i := range names {
		names[i] = fmt.Sprintf("w-%d-%d", runRound, i)
		s.create(s.newWorkload(names[i], "here"))
	}
	install(s, "routes")
	harness.InstallCRDs(s, harness.NewCRD("demo.crdcache.dev", "TCPRoute"))
	for _, name := range names[:soakWorkloads/2] {
		s.create(s.newRoute("Route", name, name+".example.com", name),
			s.newRoute("TCPRoute", name, "tcp.example.com", name))
	}
	if runRound%3 == 0 {
		harness.RestartAPIServer(s)
	}
	region := "region-" + strconv.Itoa(runRound)
	s.applyEnvironment("here", region)
	for i, name := range names {
		routed := metav1.ConditionTrue
		if i >= soakWorkloads/2 {
			routed = metav1.ConditionFalse
		}
		s.awaitCondition(name, "Routed", routed)
		s.awaitCondition(name, "Ready", metav1.ConditionTrue)
		s.awaitRegion(name, region)
	}
	for _, name := range names {
		s.delete(&Workload{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}})
	}
	for _, name := range names {
		s.awaitGone(&Workload{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}})
	}
	s.removeSettings()
}

// removeSettings deletes the objects that the garbage collector of a complete cluster would delete.
func (s *fixture) removeSettings() {
	s.Helper()
	err := s.DeleteAllOf(context.Background(), &corev1.ConfigMap{}, client.InNamespace(s.namespace))
	if err != nil {
		s.Fatal(err)
	}
}

// liveHeap returns the live heap after garbage collection.
func liveHeap() float64 {
	// The second collection frees memory that finalizers and pools retained during the first.
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}

func median[T cmp.Ordered](values []T) T {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
