package shard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// settleTime is the maximum time until shares are fair. Each shard that moves is drained for up to 10 s.
const settleTime = modelShards*11*time.Second + DefaultLeaseDuration + DefaultRetryPeriod

// TestModel runs random histories. Replicas start, stop, are killed, slow or disconnected from the API
// server, and have wrong clocks with different speeds. The model checks each acquisition. At the end, all
// shares must be fair.
func TestModel(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			runModel(t, seed, func(m *model) {
				m.startReplica(1, 0)
				for range 40 {
					m.injectFault()
					time.Sleep(m.between(time.Second, 20*time.Second))
				}
				for len(m.alive()) == 0 {
					m.startReplica(1, 0)
				}
				time.Sleep(2 * time.Minute) // until the last network partition has ended
				m.awaitFair(settleTime, "the last trouble")
				m.Logf("%d shards handed out, %d writes refused", m.mu.changes, m.mu.rejectedWrites)
			})
		})
	}
}

// TestHandOver verifies that a new replica gets its share one drained shard at a time. The shards of a
// replica that ends are taken within a second, the shards of a killed one within the lease duration and a
// retry period.
func TestHandOver(t *testing.T) {
	runModel(t, 1, func(m *model) {
		first := m.startReplica(1, 0)
		m.awaitFair(time.Second, "the start")
		second := m.startReplica(1, 0)
		m.startReplica(1, 0)
		m.startReplica(1, 0)
		m.awaitFair(time.Minute, "the start of three more")
		second.stop()
		m.awaitFair(time.Second, "the end of one")
		time.Sleep(time.Minute)
		m.kill(first)
		m.awaitFair(DefaultLeaseDuration+DefaultRetryPeriod, "the death of one")
	})
}

// TestReleaseDuringElection verifies that a replica tries again immediately if another replica has released
// the Lease during its election.
func TestReleaseDuringElection(t *testing.T) {
	runModel(t, 1, func(m *model) {
		leases := coordinationv1client.NewForConfigOrDie(m.config).Leases("default")
		setHolder := func(holder string) {
			patch := fmt.Appendf(nil, `{"spec":{"holderIdentity":%q,"leaseDurationSeconds":15}}`, holder)
			if _, err := leases.Patch(m.Context(), "model-000", types.MergePatchType, patch,
				metav1.PatchOptions{}); err != nil {
				m.Error(err)
			}
		}
		if _, err := leases.Create(m.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: "model-000", Labels: map[string]string{labelGroup: "model", labelShard: "000",
				labelShards: "1", labelLayout: ""}}}, metav1.CreateOptions{}); err != nil {
			m.Fatal(err)
		}
		take, release := sync.OnceFunc(func() { setHolder("other") }), sync.OnceFunc(func() { setHolder("") })
		config := rest.CopyConfig(m.config)
		config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodGet || path.Base(r.URL.Path) != "model-000" {
					return inner.RoundTrip(r)
				}
				take()
				defer release()
				return inner.RoundTrip(r)
			})
		})
		member, err := New(Options{Config: config, Namespace: "default", Name: "model", Shards: 1})
		if err != nil {
			m.Fatal(err)
		}
		ctx, cancel := context.WithCancel(m.Context())
		m.group.Go(func() { _ = member.Run(ctx, Handler{}) }) // ends with cancel
		time.Sleep(time.Second)
		if len(member.Ownerships()) != 1 {
			m.Errorf("the released shard is not held after a second: %+v", member.Status())
		}
		cancel()
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDeadline verifies that an ownership ends by the renew deadline after the last renewal was sent, however
// long the response took.
func TestDeadline(t *testing.T) {
	runModel(t, 1, func(m *model) {
		r := m.startReplica(1, 0)
		m.awaitFair(time.Second, "the start")
		r.setLatency(func() time.Duration { return time.Second })
		time.Sleep(time.Minute)
		ownership := r.Ownerships()[0]
		heal := r.partition(true)
		<-ownership.Context().Done()
		ownership.mu.Lock()
		deadline := ownership.mu.deadline
		ownership.mu.Unlock()
		if !time.Now().Equal(deadline) || ownership.Valid() ||
			!errors.Is(context.Cause(ownership.Context()), ErrLost) {
			m.Errorf("the ownership ended at %v by %v, valid: %v; its deadline was %v", time.Now(),
				context.Cause(ownership.Context()), ownership.Valid(), deadline)
		}
		r.setLatency(nil)
		heal()
		m.awaitFair(settleTime, "the end of the partition")
	})
}

// TestDeletedLease verifies that the holder of a deleted Lease creates it again, and no other replica takes
// it.
func TestDeletedLease(t *testing.T) {
	runModel(t, 1, func(m *model) {
		first := m.startReplica(1, 0)
		m.startReplica(1, 0)
		m.awaitFair(time.Minute, "the start")
		ownership := first.Ownerships()[0]
		if err := first.client.Leases("default").Delete(m.Context(), first.options.leaseOf(ownership.Shard()),
			metav1.DeleteOptions{}); err != nil {
			m.Fatal(err)
		}
		time.Sleep(2 * DefaultLeaseDuration)
		lease, err := first.client.Leases("default").Get(m.Context(), first.options.leaseOf(ownership.Shard()),
			metav1.GetOptions{})
		if err != nil || *lease.Spec.HolderIdentity != first.Identity() || !ownership.Valid() {
			m.Errorf("%v %+v, valid: %v", err, lease.Spec, ownership.Valid())
		}
	})
}

// TestTransitionsAreReset verifies that when the transitions of a Lease are reset, the holder loses the
// shard, and the next fencing token is still greater.
func TestTransitionsAreReset(t *testing.T) {
	runModel(t, 1, func(m *model) {
		r := m.startReplica(1, 0)
		m.awaitFair(time.Minute, "the start")
		before := r.Ownerships()[0]
		name := r.options.leaseOf(before.Shard())
		for round := range 2 {
			patch := fmt.Appendf(nil, `{"spec":{"leaseTransitions":%d}}`, 1000*(1-round))
			if _, err := r.client.Leases("default").Patch(m.Context(), name, types.MergePatchType, patch,
				metav1.PatchOptions{}); err != nil {
				m.Fatal(err)
			}
			time.Sleep(2 * DefaultLeaseDuration)
			m.awaitFair(time.Minute, "the shard is taken again")
			var after *Ownership
			for _, ownership := range r.Ownerships() {
				if ownership.Shard() == before.Shard() {
					after = ownership
				}
			}
			if after == nil || after.Token() <= before.Token() || before.Valid() {
				m.Fatalf("the ownership after the token %d is %v, want one with a greater token",
					before.Token(), after)
			}
			before = after
		}
	})
}

// TestTokensOutliveReplicas verifies that fencing tokens grow even if every replica is new and Leases were
// changed or deleted. The model compares the tokens.
func TestTokensOutliveReplicas(t *testing.T) {
	const afterRestore int64 = 1 << 40
	runModel(t, 1, func(m *model) {
		for round, patch := range []string{
			`{"spec":{"leaseTransitions":0}}`,
			`{"metadata":{"annotations":null},"spec":{"leaseTransitions":null}}`,
			"", // deletes the Leases
			fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, annotationToken, afterRestore),
			`{"spec":null}`,
		} {
			r := m.startReplica(1, 0)
			m.awaitFair(time.Minute, "the start")
			if token := r.Ownerships()[0].Token(); round > 3 && token <= afterRestore {
				m.Errorf("the token %d is not greater than the token in the annotation", token)
			}
			r.stop()
			for k := range modelShards {
				var err error
				name, leases := r.options.leaseOf(k), r.client.Leases("default")
				if patch == "" {
					err = leases.Delete(m.Context(), name, metav1.DeleteOptions{})
				} else {
					_, err = leases.Patch(m.Context(), name, types.MergePatchType, []byte(patch),
						metav1.PatchOptions{})
				}
				if err != nil {
					m.Fatal(err)
				}
			}
		}
		m.startReplica(1, 0)
		m.awaitFair(time.Minute, "the end")
	})
}

// TestSuspension verifies that the time of a suspended machine counts, although its monotonic clock has
// stopped.
func TestSuspension(t *testing.T) {
	now := time.Now()
	deadline := now.Add(time.Minute)
	for _, tt := range []struct {
		mono, wall time.Duration
		want       bool
	}{{0, 0, true}, {59 * time.Second, 59 * time.Second, true}, {time.Second, time.Hour, false}, {time.Hour,
		-time.Hour, false}} {
		if got := beforeByBothClocks(now.Add(tt.mono), now.Add(tt.wall).Round(0), deadline,
			deadline.Round(0)); got != tt.want {
			t.Errorf("beforeByBothClocks() after %v, and %v by the wall clock, = %v, want %v", tt.mono,
				tt.wall, got, tt.want)
		}
	}
}

// TestLayouts verifies that replicas with another layout wait until all replicas with the old layout have
// ended.
func TestLayouts(t *testing.T) {
	runModel(t, 1, func(m *model) {
		first := m.startReplica(1, 0)
		m.awaitFair(time.Second, "the start")
		other, err := New(Options{Config: m.config, Namespace: "default", Name: "model",
			Shards: 2 * modelShards, Layout: "namespace"})
		if err != nil {
			m.Fatal(err)
		}
		ctx, cancel := context.WithCancel(m.Context())
		m.group.Go(func() { _ = other.Run(ctx, Handler{}) }) // ends with cancel
		time.Sleep(10 * DefaultLeaseDuration)
		if status := other.Status(); len(other.Ownerships()) > 0 || !status.Waiting ||
			len(status.Members) != 2 {
			m.Errorf("%d shards are held, the status is %+v", len(other.Ownerships()), status)
		}
		m.kill(first)
		time.Sleep(DefaultLeaseDuration + DefaultRetryPeriod)
		if status := other.Status(); len(other.Ownerships()) != 2*modelShards || status.Waiting {
			m.Errorf("%d shards are held, the status is %+v", len(other.Ownerships()), status)
		}
		cancel()
	})
}

// TestCost verifies that the number of writes does not depend on the number of replicas, except for the
// member Leases. Each replica has one watch.
func TestCost(t *testing.T) {
	runModel(t, 1, func(m *model) {
		replicas := []*replica{m.startReplica(1, 0), m.startReplica(1, 0), m.startReplica(1, 0)}
		m.awaitFair(settleTime, "the start")
		before := map[string]int{}
		for _, r := range replicas {
			for _, verb := range []string{"GET", "PUT", "POST"} {
				before[verb] += r.count(verb)
			}
		}
		const minutes = 20
		time.Sleep(minutes * time.Minute)
		for _, r := range replicas {
			for _, verb := range []string{"GET", "PUT", "POST"} {
				before[verb] -= r.count(verb)
			}
		}
		fewest, most := minutes*60/10*(modelShards+3), minutes*60/8*(modelShards+3)
		if puts := -before["PUT"]; puts < fewest || puts > most {
			m.Errorf("%d renewals in %d minutes, want %d to %d", puts, minutes, fewest, most)
		}
		if gets := -before["GET"]; gets > 3*2*(minutes/5+1) || before["POST"] != 0 {
			m.Errorf("%d GETs and %d POSTs in %d minutes", gets, -before["POST"], minutes)
		}
	})
}

// injectFault causes a random fault.
func (m *model) injectFault() {
	alive := m.alive()
	if len(alive) == 0 || len(alive) < 5 && m.random.IntN(4) == 0 {
		m.startReplica(0.9+0.2*m.random.Float64(), m.between(-time.Hour, time.Hour))
		return
	}
	r := alive[m.random.IntN(len(alive))]
	switch m.random.IntN(6) {
	case 0:
		m.kill(r)
	case 1:
		m.mu.Lock()
		r.isLeaving = true
		m.mu.Unlock()
		m.group.Go(r.stop) // ends after draining
	case 2, 3:
		time.AfterFunc(m.between(time.Second, 100*time.Second), r.partition(m.random.IntN(2) == 0))
	case 4:
		most := m.between(time.Millisecond, 12*time.Second)
		r.setLatency(func() time.Duration { return rand.N(most) })
		time.AfterFunc(m.between(time.Second, 100*time.Second), func() { r.setLatency(nil) })
	}
}

// TestTokensOutOfRange verifies that an annotation that no replica wrote does not make fencing tokens
// negative.
func TestTokensOutOfRange(t *testing.T) {
	for _, text := range []string{"9223372036854775807", "99999999999999999999", "-1", "text"} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "100", Annotations: map[string]string{annotationToken: text},
		}}
		if token := greatestToken(lease); token != 100 {
			t.Errorf("annotation %s: the token is %d, want 100", text, token)
		}
	}
}

// TestLeasesOfKilledReplicasAreRemoved verifies that the member Leases of killed replicas are removed
// eventually.
func TestLeasesOfKilledReplicasAreRemoved(t *testing.T) {
	runModel(t, 1, func(m *model) {
		first := m.startReplica(1, 0)
		m.kill(m.startReplica(1, 0))
		m.kill(m.startReplica(1, 0))
		time.Sleep(13 * DefaultLeaseDuration)
		list, err := first.client.Leases("default").List(m.Context(), metav1.ListOptions{})
		if err != nil {
			m.Fatal(err)
		}
		if len(list.Items) != modelShards+1 {
			m.Errorf("%d Leases are left, want %d", len(list.Items), modelShards+1)
		}
	})
}
