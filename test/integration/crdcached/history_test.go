package crdcached_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/test/integration/harness"
)

var (
	rounds = flag.Int("rounds", 1, "the number of rounds of TestHistory")
	seed   = flag.Uint64("seed", 0, "the seed of the first round of TestHistory; 0 means a seed from the clock")
)

// stepsAround is the number of writes during a disruption, and again after it.
const stepsAround = 40

// TestHistory writes at random while the API server, etcd and crdcached are killed. Some clients alternate
// between the three servers during watches, others stay with the killed server. Between its lists, no client
// may miss an event or receive a wrong one. Events of client-go's informers must be consistent. Finally, all
// clients must agree with the cluster.
func TestHistory(t *testing.T) {
	widgets := installWidgets(t)
	namespaces := []string{harness.Namespace(t), harness.Namespace(t)}
	firstSeed := *seed
	if firstSeed == 0 {
		firstSeed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	victim, other := startDaemon(t, widgets), startProcess(t, widgets)
	w := newWriter(t, widgets, namespaces)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var readers []*reader
	for n, configs := range []serverConfigs{
		{victim.config(), other.config(), harness.Config(t)}, {victim.config(),
			other.config()}, {victim.config()}, {harness.Config(t), victim.config()},
	} {
		r := newReader(t, fmt.Sprint("reader ", n), widgets, configs)
		readers = append(readers, r)
		ended := make(chan struct{})
		go func() { defer close(ended); r.run(ctx) }() // ended by cancel
		defer func() { cancel(); <-ended }()
	}
	followers := startFollowers(t, widgets, victim, other)
	for n := range uint64(*rounds) {
		t.Logf("round %d has the seed %d", n+1, firstSeed+n)
		random := rand.New(rand.NewPCG(firstSeed+n, 0))
		disruptions := []func(){
			func() { victim.kill(); victim.restart() },
			func() { harness.KillAPIServer(t); harness.RestartAPIServer(t) },
			func() { harness.KillEtcd(t); harness.RestartEtcd(t) },
		}
		for _, number := range random.Perm(len(disruptions)) {
			w.writeDuring(random, disruptions[number])
			t.Logf("disruption %d ended at %s, with %d writes", number,
				time.Now().Format("05.000"), len(w.order))
		}
		for _, f := range followers {
			harness.Eventually(t, func(context.Context) error { return f.compare(w) })
			f.check(t, w)
		}
		for _, r := range readers {
			harness.Eventually(t, func(context.Context) error { return r.compare(w) })
			r.check(w)
		}
		if t.Failed() {
			t.Fatalf("run this round again: go test ./crdcached -run TestHistory -args -seed=%d", firstSeed+n)
		}
	}
	for _, r := range readers {
		t.Logf("%s listed %d times and received %d events", r.name, len(r.segments), r.countEvents())
	}
}

// writeDuring writes before, during and after a disruption, which action causes.
func (w *writer) writeDuring(random *rand.Rand, action func()) {
	w.Helper()
	begin, over := 1+random.IntN(stepsAround), make(chan struct{})
	for range begin {
		w.step(random)
	}
	go func() { defer close(over); action() }() // ended below
	for range stepsAround {
		w.step(random)
	}
	<-over
	for range stepsAround {
		w.step(random)
	}
}

// diff describes the difference between state and the written objects. It returns nil if there is none.
func (w *writer) diff(name string, state map[string]objectState) error {
	if diff := cmp.Diff(w.live, state, cmp.AllowUnexported(objectState{})); diff != "" {
		return fmt.Errorf("%s (-written +received):\n%s", name, diff)
	}
	return nil
}
