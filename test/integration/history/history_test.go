package history_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// stepsPerRound is the number of the writer's steps in a round.
const stepsPerRound = 300

func TestHistory(t *testing.T) {
	firstSeed := *seed
	if firstSeed == 0 {
		firstSeed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	w := newFixture(t)
	until := time.Now().Add(*duration)
	rounds := uint64(0)
	for ; rounds == 0 || time.Now().Before(until); rounds++ {
		t.Logf("round %d has the seed %d", rounds+1, firstSeed+rounds)
		w.round(rand.New(rand.NewPCG(firstSeed+rounds, 0)))
		if t.Failed() {
			t.Fatalf("run this round again: go test ./history -args -seed=%d -duration=0s", firstSeed+rounds)
		}
	}
	w.endProcess(w.process, false)
	t.Logf("%d rounds; %d events were delivered; %d restarts of API servers, %d compactions, %d definitions created again",
		rounds, w.countDelivered(),
		w.restarted, w.compacted, w.recreated+w.other.recreated)
	t.Log(w.process.counts)
}

func (w *fixture) round(r *rand.Rand) {
	w.Helper()
	actions := map[int][]func(){}
	schedule := func(from, steps int, action func()) int {
		step := from + r.IntN(steps)
		actions[step] = append(actions[step], action)
		return step
	}
	victim := w.kinds[r.IntN(len(w.kinds))]
	uninstalled := schedule(0, stepsPerRound/2, func() { w.uninstall(victim) })
	schedule(uninstalled, stepsPerRound/2, func() { w.install(victim) })
	schedule(0, stepsPerRound, func() {
		harness.RestartAPIServer(w)
		w.restarted++
	})
	if r.IntN(3) == 0 {
		faults := w.randomFaults(r)
		schedule(0, stepsPerRound, func() {
			harness.Compact(w)
			w.compacted++
			faults.ExpireWatches()
		})
	}
	w.scheduleOtherDisruptions(r, schedule)
	w.scheduleRestarts(r, schedule)
	for step := range stepsPerRound {
		if len(actions[step]) > 0 {
			w.Logf("step %d at %s: %d disruptions", step, time.Now().Format("05.000"), len(actions[step]))
		}
		for _, happen := range actions[step] {
			happen()
		}
		w.step(r)
		if step%4 == 0 {
			w.inspect(w.process, false)
		}
	}
	w.awaitAgreement()
}

// scheduleOtherDisruptions schedules disruptions of the other cluster at random steps of a round.
func (w *fixture) scheduleOtherDisruptions(r *rand.Rand, schedule func(from, steps int, action func()) int) {
	if r.IntN(2) == 0 {
		victim := w.other.kinds[r.IntN(len(w.other.kinds))]
		uninstalled := schedule(0, stepsPerRound/2, func() { w.other.uninstall(victim) })
		schedule(uninstalled, stepsPerRound/2, func() { w.other.install(victim) })
	}
	if r.IntN(4) == 0 {
		schedule(0, stepsPerRound, func() {
			w.secondCluster.Compact(w)
			w.secondCluster.RestartAPIServer(w)
			w.compacted++
			w.restarted++
		})
	}
}

// step makes one small change.
func (w *fixture) step(r *rand.Rand) {
	w.Helper()
	switch n := r.IntN(100); {
	case n < 65:
		w.write(r)
	case n < 87:
		w.other.write(r)
	case n < 89:
		w.randomFaults(r).EndWatches()
	case n < 90:
		w.randomFaults(r).BreakWatches()
	case n < 91:
		w.randomFaults(r).ExpireWatches()
	case n < 94:
		w.randomSubscriber(r).ToggleBlocking()
	case n < 96:
		w.toggleHandler(w.process, r.IntN(1000))
	case n < 98:
		w.subscribe(w.randomFollower(r), r.IntN(2) == 0)
	case n < 99:
		if r.IntN(2) == 0 {
			w.unsubscribe(w.randomSubscriber(r))
		} else {
			w.releaseTemporary(w.randomFollower(r))
		}
	default:
		w.acquireTemporary(r.IntN(len(w.factories)), w.kinds[r.IntN(len(w.kinds))])
	}
}
