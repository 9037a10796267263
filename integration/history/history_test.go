package history_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/crdcache/crdcache/integration/harness"
)

// stepsPerRound is the number of the writer's steps in a round.
const stepsPerRound = 300

func TestHistory(t *testing.T) {
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano()) % 1_000_000
	}
	w := newFixture(t)
	until := time.Now().Add(*duration)
	rounds := uint64(0)
	for ; rounds == 0 || time.Now().Before(until); rounds++ {
		t.Logf("round %d has the seed %d", rounds+1, first+rounds)
		w.round(rand.New(rand.NewPCG(first+rounds, 0)))
		if t.Failed() {
			t.Fatalf("run this round again: go test ./history -args -seed=%d -duration=0s", first+rounds)
		}
	}
	w.end(w.process, false)
	t.Logf("%d rounds; %d events were delivered; %d restarts of API servers, %d compactions, %d definitions created again", rounds, w.delivered(),
		w.restarted, w.compacted, w.recreated+w.other.recreated)
	t.Log(w.process.counts)
}

func (w *fixture) round(r *rand.Rand) {
	w.Helper()
	once := map[int][]func(){}
	at := func(from, steps int, happen func()) int {
		step := from + r.IntN(steps)
		once[step] = append(once[step], happen)
		return step
	}
	victim := w.kinds[r.IntN(len(w.kinds))]
	away := at(0, stepsPerRound/2, func() { w.uninstall(victim) })
	at(away, stepsPerRound/2, func() { w.install(victim) })
	at(0, stepsPerRound, func() {
		harness.RestartAPIServer(w)
		w.restarted++
	})
	if r.IntN(3) == 0 {
		unlucky := w.link(r)
		at(0, stepsPerRound, func() {
			harness.Compact(w)
			w.compacted++
			unlucky.ExpireWatches()
		})
	}
	w.disruptOtherCluster(r, at)
	w.restarts(r, at)
	for step := range stepsPerRound {
		if len(once[step]) > 0 {
			w.Logf("step %d at %s: %d disruptions", step, time.Now().Format("05.000"), len(once[step]))
		}
		for _, happen := range once[step] {
			happen()
		}
		w.step(r)
		if step%4 == 0 {
			w.inspect(w.process, false)
		}
	}
	w.awaitAgreement()
}

// disruptOtherCluster applies some disruptions to the other cluster.
func (w *fixture) disruptOtherCluster(r *rand.Rand, schedule func(from, steps int, action func()) int) {
	if r.IntN(2) == 0 {
		victim := w.other.kinds[r.IntN(len(w.other.kinds))]
		away := schedule(0, stepsPerRound/2, func() { w.other.uninstall(victim) })
		schedule(away, stepsPerRound/2, func() { w.other.install(victim) })
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
		w.link(r).EndWatches()
	case n < 90:
		w.link(r).BreakWatches()
	case n < 91:
		w.link(r).ExpireWatches()
	case n < 94:
		w.subscriber(r).ToggleBlocking()
	case n < 96:
		w.toggle(w.process, r.IntN(1000))
	case n < 98:
		w.subscribe(w.follower(r), r.IntN(2) == 0)
	case n < 99:
		if r.IntN(2) == 0 {
			w.unsubscribe(w.subscriber(r))
		} else {
			w.endVisit(w.follower(r))
		}
	default:
		w.visit(r.IntN(len(w.factories)), w.kinds[r.IntN(len(w.kinds))])
	}
}
