package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/test/testcluster"
)

const modelShards = 8

// model is a group of replicas, and checks their invariants.
type model struct {
	*testing.T
	config    *rest.Config
	logger    klog.Logger // the replicas' logger
	random    *rand.Rand
	startTime time.Time
	group     sync.WaitGroup

	mu struct {
		sync.Mutex
		replicas []*replica
		// lastTokens and storedTokens are by shard: the last token that a replica acquired, and the greatest
		// token of an accepted write.
		lastTokens, storedTokens [modelShards]int64
		rejectedWrites           int
		changes                  int
	}
}

type replica struct {
	*Member
	*network
	name string
	stop func() // stops the replica gracefully

	// The model's lock guards all other fields.
	isDead, isLeaving bool
	works             map[int]*shardWork
}

// shardWork is the work of a replica in a shard.
type shardWork struct {
	ownership *Ownership
	done      chan struct{}
	busy      bool
}

// runModel runs a model with a virtual clock.
func runModel(t *testing.T, seed uint64, script func(m *model)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster, err := testcluster.New(t.Context(), testcluster.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := &model{T: t, config: cluster.Config(), logger: klog.Background(),
			random: rand.New(&lockedSource{inner: rand.NewPCG(seed, 0)}), startTime: time.Now()}
		for k := range m.mu.lastTokens {
			m.mu.lastTokens[k] = -1
		}
		script(m)
		for _, r := range m.alive() {
			r.stop()
		}
		m.group.Wait()
	})
}

// lockedSource is a rand.Source for several goroutines.
type lockedSource struct {
	mu    sync.Mutex
	inner rand.Source
}

func (s *lockedSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inner.Uint64()
}

func (m *model) between(least, most time.Duration) time.Duration {
	return least + time.Duration(m.random.Int64N(int64(most-least)))
}

// startReplica starts a replica with the rate and skew of its clock.
func (m *model) startReplica(rate float64, skew time.Duration) *replica {
	m.Helper()
	n := &network{skew: skew}
	scaled := func(d time.Duration) time.Duration { return time.Duration(float64(d) / rate) }
	member, err := New(Options{
		Config: connect(m.config, n), Namespace: "default", Name: "model", Shards: modelShards,
		Identity: fmt.Sprintf("replica-%d", len(m.mu.replicas)), LeaseDuration: DefaultLeaseDuration,
		RenewDeadline: scaled(DefaultRenewDeadline), RetryPeriod: scaled(DefaultRetryPeriod),
		DrainTimeout: scaled(10 * time.Second),
	})
	if err != nil {
		m.Fatal(err)
	}
	origin := time.Now()
	member.now = func() time.Time { return origin.Add(time.Duration(float64(time.Since(origin)) * rate)) }
	r := &replica{Member: member, network: n, name: member.Identity(), works: map[int]*shardWork{}}
	ctx, cancel := context.WithCancel(klog.NewContext(m.Context(), m.logger))
	ended := make(chan struct{})
	m.group.Go(func() { // ends with stop
		defer close(ended)
		if err := member.Run(ctx, Handler{
			Acquired: func(ownerships []*Ownership) { m.onAcquired(r, ownerships) },
			Drain:    func(ctx context.Context, ownership *Ownership) { m.drain(ctx, r, ownership) },
		}); err != nil {
			m.Error(err)
		}
	})
	r.stop = func() {
		m.mu.Lock()
		r.isLeaving = true
		m.mu.Unlock()
		cancel()
		<-ended
		m.mu.Lock()
		defer m.mu.Unlock()
		r.isDead = true
	}
	m.mu.Lock()
	m.mu.replicas = append(m.mu.replicas, r)
	m.mu.Unlock()
	return r
}

// onAcquired checks that no other replica works on the shard, and starts the work.
func (m *model) onAcquired(rep *replica, ownerships []*Ownership) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if rep.isDead {
		return
	}
	for _, t := range ownerships {
		m.mu.changes++
		if token := t.Token(); token <= m.mu.lastTokens[t.shard] {
			m.Errorf("%v: %s got shard %d with token %d, after %d", time.Since(m.startTime), rep.name, t.shard,
				token, m.mu.lastTokens[t.shard])
		} else {
			m.mu.lastTokens[t.shard] = token
		}
		for _, other := range m.mu.replicas {
			if w := other.works[t.shard]; w != nil && !other.isDead &&
				(w.busy && w.ownership.Valid() || other == rep) {
				m.Errorf("%v: %s got shard %d while %s has it", time.Since(m.startTime), rep.name,
					t.shard, other.name)
			}
		}
		w := &shardWork{ownership: t, done: make(chan struct{}), busy: true}
		rep.works[t.shard] = w
		obedient, pace := m.random.IntN(4) > 0, m.between(100*time.Millisecond, 5*time.Second)
		m.group.Go(func() { m.work(w, obedient, pace) }) // ends with the ownership, or some time later
	}
}

// work writes until the ownership ends. If obedient is false, it continues for a while, and its token is
// refused if another replica has written.
func (m *model) work(w *shardWork, obedient bool, pace time.Duration) {
	defer close(w.done)
	for w.ownership.Valid() {
		select {
		case <-time.After(pace):
		case <-w.ownership.Context().Done():
		}
		m.write(w)
	}
	if !obedient {
		time.Sleep(time.Minute)
		m.write(w)
	}
}

// write writes to a storage that is fenced by the token.
func (m *model) write(w *shardWork) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if token, k := w.ownership.Token(), w.ownership.shard; token >= m.mu.storedTokens[k] {
		if m.mu.storedTokens[k] = token; token < m.mu.lastTokens[k] && w.ownership.Valid() {
			m.Errorf("%v: shard %d was written with token %d after %d was issued", time.Since(m.startTime), k,
				token,
				m.mu.lastTokens[k])
		}
	} else {
		m.mu.rejectedWrites++
	}
}

// drain ends the work in a shard before or at the end of ctx.
func (m *model) drain(ctx context.Context, r *replica, t *Ownership) {
	m.mu.Lock()
	w, pace := r.works[t.shard], m.between(0, 15*time.Second)
	m.mu.Unlock()
	if w == nil {
		if !r.isDead {
			m.Errorf("%v: %s drains shard %d, which it never got", time.Since(m.startTime), r.name, t.shard)
		}
		return
	}
	select {
	case <-time.After(pace):
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w.busy = false
	delete(r.works, t.shard)
}

// alive returns the replicas that run and are not ending.
func (m *model) alive() []*replica {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.mu.replicas),
		func(r *replica) bool { return r.isDead || r.isLeaving })
}

func (m *model) kill(r *replica) {
	m.mu.Lock()
	r.isDead = true
	m.mu.Unlock()
	r.network.kill()
	m.group.Go(r.stop) // ends because the network fails all requests
}

// awaitFair fails the test unless all shards are fairly distributed in time.
func (m *model) awaitFair(within time.Duration, reason string) {
	m.Helper()
	var counts []int
	for deadline := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		alive := m.alive()
		least, most, sum := modelShards/len(alive), (modelShards+len(alive)-1)/len(alive), 0
		counts = counts[:0]
		fair := true
		for _, r := range alive {
			count := len(r.Ownerships())
			counts, sum = append(counts, count), sum+count
			fair = fair && least <= count && count <= most
		}
		if fair && sum == modelShards {
			return
		}
		if time.Now().After(deadline) {
			m.Errorf("%v: %v after %s, the replicas have %v shards, want all %d in fair shares",
				time.Since(m.startTime), within, reason, counts, modelShards)
			return
		}
	}
}

// TestPlan verifies that from any distribution, replicas that observe the same Leases get fair shares. They
// need the least number of hand-overs, with at most one shard without a holder for each replica.
func TestPlan(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	for range 300 {
		shards, members := 1+random.IntN(70), 1+random.IntN(9)
		names := make([]string, members)
		for i := range names {
			names[i] = fmt.Sprintf("replica-%d", i)
		}
		holders := make([]string, shards)
		for k := range holders {
			if owner := random.IntN(members + 1); owner < members {
				holders[k] = names[owner]
			}
		}
		start, least, most := count(holders), shards/members, (shards+members-1)/members
		needed := 0 // number of shards that have to move
		for _, m := range names {
			needed += max(0, start[m]-least)
		}
		moved, isStable := 0, false
		for round := 0; !isStable; round++ {
			if round > 10*shards {
				t.Fatalf("%d shards, %d members: the plans do not converge: %v", shards, members,
					count(holders))
			}
			before := slices.Clone(holders)
			for _, m := range names {
				take, give := planState{identity: m, members: names, holders: slices.Clone(before)}.decide()
				for _, k := range take {
					if holders[k] == "" { // if the shard has a holder, another replica was faster
						holders[k] = m
					}
				}
				if give >= 0 {
					holders[give], moved = "", moved+1
				}
			}
			isStable = slices.Equal(before, holders)
		}
		for _, m := range names {
			if n := count(holders)[m]; n < least || n > most {
				t.Errorf("%d shards, %d members: unfair shares %v from the start %v", shards, members,
					count(holders), start)
			}
		}
		if moved > needed {
			t.Errorf("%d shards, %d members: %d shards were released, want the necessary %d; start %v",
				shards, members,
				moved, needed, start)
		}
	}
}

func count(holders []string) map[string]int {
	counts := map[string]int{}
	for _, h := range holders {
		counts[h]++
	}
	delete(counts, "")
	return counts
}

func TestOptions(t *testing.T) {
	validOptions := func() Options {
		return Options{Config: &rest.Config{}, Namespace: "operators", Name: "delivery"}
	}
	if _, err := New(validOptions()); err != nil {
		t.Errorf("New() with the defaults = %v", err)
	}
	for name, tt := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no config":       {func(o *Options) { o.Config = nil }, "Config is missing"},
		"no namespace":    {func(o *Options) { o.Namespace = "" }, "Namespace is missing"},
		"no name":         {func(o *Options) { o.Name = "" }, `Name ""`},
		"a long name":     {func(o *Options) { o.Name = strings.Repeat("a", 41) }, "at most 40"},
		"no DNS label":    {func(o *Options) { o.Name = "A" }, `Name "A"`},
		"no label value":  {func(o *Options) { o.Layout = "a b" }, `Layout "a b"`},
		"too many shards": {func(o *Options) { o.Shards = 1025 }, "Shards is 1025"},
		"negative shards": {func(o *Options) { o.Shards = -1 }, "Shards is -1"},
		"fraction of a second": {func(o *Options) { o.LeaseDuration = 40500 * time.Millisecond },
			"whole seconds"},
		"a late deadline": {func(o *Options) { o.RenewDeadline = 40 * time.Second },
			"less than LeaseDuration"},
		"one try":                {func(o *Options) { o.RetryPeriod = 25 * time.Second }, "a second attempt"},
		"a negative period":      {func(o *Options) { o.RetryPeriod = -time.Second }, "RetryPeriod -1s"},
		"negative drain timeout": {func(o *Options) { o.DrainTimeout = -time.Second }, "DrainTimeout"},
	} {
		t.Run(name, func(t *testing.T) {
			o := validOptions()
			tt.change(&o)
			if _, err := New(o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want %q", err, tt.want)
			}
		})
	}
}

func TestStatic(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	seen := map[int]int{}
	for ordinal := range 3 {
		fixed, err := Static(ordinal, 3, 64)
		if err != nil {
			t.Fatal(err)
		}
		drained := make(chan int, 64)
		got := 0
		err = fixed.Run(ctx, Handler{
			Acquired: func(ownerships []*Ownership) {
				for _, ownership := range ownerships {
					seen[ownership.Shard()]++
					got++
					if !ownership.Valid() || ownership.Token() != 0 {
						t.Errorf("shard %d: Valid() = false or Token() = %d, want true, 0", ownership.Shard(),
							ownership.Token())
					}
				}
			},
			Drain: func(_ context.Context, ownership *Ownership) { drained <- ownership.Shard() },
		})
		if err != nil || got < 21 || got > 22 || len(drained) != got {
			t.Errorf("replica %d: Run() = %v with %d shards, of which %d were drained; want 21 or 22",
				ordinal, err, got, len(drained))
		}
	}
	for k := range 64 {
		if seen[k] != 1 {
			t.Errorf("shard %d belongs to %d replicas, want 1", k, seen[k])
		}
	}
	for _, invalid := range [][3]int{{3, 3, 64}, {-1, 3, 64}, {0, 0, 64}, {0, 1, 0}, {0, 1, 1025}} {
		if _, err := Static(invalid[0], invalid[1], invalid[2]); err == nil {
			t.Errorf("Static(%v) succeeded, want an error", invalid)
		}
	}
}
