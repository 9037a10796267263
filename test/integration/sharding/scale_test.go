package sharding_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// fixture is a namespace of objects, and the reports of the replicas.
type fixture struct {
	testing.TB
	client.Client
	namespace string
	// address is where replicas send reports.
	address string

	mu struct {
		sync.Mutex
		replicas map[string]*replica
		// written and reconciled have the last such value of each object, by its number.
		written, reconciled []string
		busy                map[types.UID]reconciliation
		deleted             []string
		// holders has the replica that last acquired each shard, until it reports the release. tokens has the
		// greatest fencing token with which each shard was acquired.
		holders map[int]*replica
		tokens  map[int]int64
		// endedOwnerships has the ended ownership of each shard until another replica reconciles an object of
		// it.
		endedOwnerships map[int]ownershipEnd
		// handOvers has the times from the end of an ownership to that reconcile.
		handOvers map[endManner][]time.Duration
	}
}

// reconciliation is a reconciliation in progress: the replica that runs it, and the fencing token of its
// ownership of the shard.
type reconciliation struct {
	by    *replica
	token int64
}

type ownershipEnd struct {
	from *replica
	at   time.Time
	endManner
}

type endManner string

const (
	graceful endManner = "given up"
	killed   endManner = "left by a replica that was killed"
	paused   endManner = "left by a replica that was paused"
	cutOff   endManner = "left by a replica that was cut off"
)

func newFixture(t testing.TB) *fixture {
	t.Helper()
	admin, err := client.New(harness.Config(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &fixture{TB: t, Client: admin, namespace: harness.Namespace(t)}
	s.mu.written, s.mu.reconciled = make([]string, *objects), make([]string, *objects)
	s.mu.replicas, s.mu.busy, s.mu.endedOwnerships, s.mu.handOvers = map[string]*replica{},
		map[types.UID]reconciliation{},
		map[int]ownershipEnd{}, map[endManner][]time.Duration{}
	s.mu.holders, s.mu.tokens = map[int]*replica{}, map[int]int64{}
	s.startReceiver()
	return s
}

// endOwnershipLocked records that a replica is about to lose its shards.
func (s *fixture) endOwnershipLocked(r *replica, manner endManner) {
	for k, holder := range s.mu.holders {
		if holder == r {
			s.mu.endedOwnerships[k] = ownershipEnd{r, time.Now(), manner}
		}
	}
}

func (s *fixture) createObjects() {
	s.Helper()
	var group sync.WaitGroup
	numbers := make(chan int)
	for range 16 {
		group.Go(func() { // ended by the last number
			for n := range numbers {
				object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace,
					Name: fmt.Sprintf("object-%d", n)}, Data: map[string]string{"v": "0"}}
				if err := s.Create(context.Background(), object); err != nil {
					s.Error(err)
				}
			}
		})
	}
	for n := range *objects {
		s.mu.written[n] = "0"
		numbers <- n
	}
	close(numbers)
	group.Wait()
}

// update changes objects at random until ctx ends.
func (s *fixture) update(ctx context.Context) {
	ticker := time.NewTicker(time.Second / time.Duration(*updates))
	defer ticker.Stop()
	for round := 1; ; round++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		n, value := rand.IntN(*objects), fmt.Sprint(round)
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace,
			Name: fmt.Sprintf("object-%d", n)}}
		patch := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"data":{"v":%q}}`, value)))
		if err := s.Patch(context.WithoutCancel(ctx), object, patch); err != nil {
			s.Error(err)
			return
		}
		s.mu.Lock()
		s.mu.written[n] = value
		s.mu.Unlock()
	}
}

// patience limits the time without progress.
const patience = 5 * time.Minute

// await waits until check returns zero. It fails the test with the description if the number does not
// decrease for the duration of patience.
func (s *fixture) await(check func() (remaining int, description string)) {
	s.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for least, since := math.MaxInt, time.Now(); ; <-ticker.C {
		s.mu.Lock()
		remaining, description := check()
		s.mu.Unlock()
		switch {
		case remaining == 0:
			return
		case remaining < least:
			least, since = remaining, time.Now()
		case time.Since(since) > patience:
			s.Fatalf("no progress for %v: %s", patience, description)
		}
	}
}

// awaitReconciled waits until the last state of all objects has been reconciled.
func (s *fixture) awaitReconciled() {
	s.Helper()
	s.await(func() (remaining int, description string) {
		for n, written := range s.mu.written {
			if s.mu.reconciled[n] != written {
				remaining++
				description = fmt.Sprintf("object-%d has %q, but was last reconciled with %q", n, written,
					s.mu.reconciled[n])
			}
		}
		return remaining, description
	})
}

// awaitShares waits until exactly these replicas hold all shards, in fair shares.
func (s *fixture) awaitShares(replicas ...*replica) {
	s.Helper()
	s.await(func() (remaining int, description string) {
		held, sum := map[*replica]int{}, 0
		for _, holder := range s.mu.holders {
			held[holder]++
		}
		for _, r := range replicas {
			sum += held[r]
			if least := *shards / len(replicas); held[r] < least {
				remaining += least - held[r]
				description = fmt.Sprintf("%s has %d shards, want at least %d", r.name, held[r], least)
			}
		}
		if sum != *shards {
			remaining += *shards - sum
			description = fmt.Sprintf("%d of %d shards are held: %s", sum, *shards, description)
		}
		return remaining, description
	})
}

// TestScale runs one to four replicas. One is killed. One is suspended for longer than its Leases, and one is
// disconnected from the API server for as long; both recover. Objects change all the time. The last state of
// each object must be reconciled, by one replica at a time, and no object may appear deleted. The suspended
// replica is fenced: it must not start work in shards that others have acquired.
func TestScale(t *testing.T) {
	s := newFixture(t)
	s.createObjects()
	host := harness.Config(t).Host
	server, err := url.Parse(host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := harness.StartFaultProxy(t, server.Host)
	first := s.startReplica("first", host)
	s.awaitReconciled()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	updated := make(chan struct{})
	go func() { // ended by cancel
		defer close(updated)
		s.update(ctx)
	}()
	second, third := s.startReplica("second", host), s.startReplica("third", host)
	fourth := s.startReplica("fourth", "https://"+proxy.Address())
	s.awaitShares(first, second, third, fourth)

	s.signal(second, syscall.SIGKILL, killed)
	s.signal(third, syscall.SIGSTOP, paused)
	s.mu.Lock()
	s.endOwnershipLocked(fourth, cutOff)
	s.mu.Unlock()
	restore := proxy.Cut(t)
	s.awaitShares(first)

	restore()
	if err := third.process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	s.awaitShares(first, third, fourth)
	first.terminate()
	s.awaitShares(third, fourth)
	cancel()
	<-updated
	s.awaitReconciled()

	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.deleted) > 0 {
		t.Errorf("replicas considered these objects deleted: %v", s.mu.deleted)
	}
	if third.stale > workers { // each worker may be suspended between its check and its report
		t.Errorf("the suspended replica sent %d reports about shards of other replicas, want at most %d",
			third.stale, workers)
	}
	for how, times := range s.mu.handOvers {
		slices.Sort(times)
		t.Logf("%d shards were %s; until the first reconcile elsewhere it took %v (median), %v at most",
			len(times), how, times[len(times)/2].Round(time.Millisecond),
			times[len(times)-1].Round(time.Millisecond))
	}
}
