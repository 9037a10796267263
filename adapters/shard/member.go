package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
)

// Handler starts and ends the work of shards. Both functions are optional.
type Handler struct {
	// Acquired is called with shards that the replica has acquired, usually with several at first. It must
	// not block, because it delays the acquisition and release of other shards.
	Acquired func([]*Ownership)
	// Drain ends the work in a shard that the replica gives up, or has lost. It returns when no work is
	// running; afterwards the replica releases the Lease. When ctx ends, after Options.DrainTimeout at the
	// latest, it must cancel the work. Several shards can be drained concurrently.
	Drain func(ctx context.Context, ownership *Ownership)
}

// Assigner assigns shards to this replica: a Member by Leases, Fixed by ordinal.
type Assigner interface {
	// Shards returns the number of shards.
	Shards() int
	// Run assigns shards until ctx ends, and returns when all have been drained.
	Run(ctx context.Context, handler Handler) error
}

// Member is a replica that shares shards with others by Leases. Create it with New. It is safe for concurrent
// use.
type Member struct {
	options  Options
	identity string
	idSuffix string // the suffix of identity, and of the name of the member's Lease
	// client has a timeout for each request, because a request on a dead connection would never end.
	// watchClient, for watches, has none.
	client, watchClient coordinationv1client.LeasesGetter
	handler             Handler
	// now is the clock for the Leases of others. Tests have clocks with different speeds.
	now func() time.Time
	// wakeCh has capacity 1. wake sends to it to wake the loop.
	wakeCh chan struct{}

	mu struct {
		sync.Mutex
		running  bool
		observed observedLeases
		// isListed is true while the observed Leases are complete and watched.
		isListed        bool
		shards          map[int]*shardLease
		failedElections map[int]failedElection // by shard
		// lastReport is the time of the last log entry about a shard that was not acquired.
		lastReport time.Time
	}
}

// New returns a Member, or an error that lists all invalid options.
func New(options Options) (*Member, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(options.Config)
	if config.RateLimiter == nil {
		config.QPS = -1
	}
	m := &Member{options: options, idSuffix: rand.String(10), now: time.Now, wakeCh: make(chan struct{}, 1)}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("shard: %w", err)
	}
	timed := *client
	timed.Timeout = options.RetryPeriod
	m.client, err = coordinationv1client.NewForConfigAndClient(config, &timed)
	if err == nil {
		m.watchClient, err = coordinationv1client.NewForConfigAndClient(config, client)
	}
	if err != nil {
		return nil, fmt.Errorf("shard: %w", err)
	}
	m.identity = options.Identity + "_" + m.idSuffix
	m.mu.observed = observedLeases{options: options, leases: map[string]*observedLease{}}
	m.mu.shards, m.mu.failedElections = map[int]*shardLease{}, map[int]failedElection{}
	return m, nil
}

// Identity returns the holder identity of the replica in Leases.
func (m *Member) Identity() string { return m.identity }

// Shards returns the number of shards.
func (m *Member) Shards() int { return m.options.Shards }

// Ownerships returns the ownerships of the shards that the replica holds, in the order of shards.
func (m *Member) Ownerships() []*Ownership {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ownerships []*Ownership
	for _, shard := range slices.Sorted(maps.Keys(m.mu.shards)) {
		if s := m.mu.shards[shard]; s.handlerCalled && s.ownership.Valid() {
			ownerships = append(ownerships, s.ownership)
		}
	}
	return ownerships
}

// Status has the members and holders that a replica observes.
type Status struct {
	// Members are the sorted identities of all running replicas, including this one.
	Members []string
	// Holders has the identity of the holder of each shard; "" if it has none.
	Holders []string
	// Waiting is true if the replica takes no shards because other replicas have another number of shards or
	// another layout.
	Waiting bool
}

// Status returns the last observed state. It is empty before the replica has listed the Leases.
func (m *Member) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.mu.isListed {
		return Status{}
	}
	v := m.mu.observed.planInput(m.identity, m.now())
	return Status{Members: v.members, Holders: v.holders, Waiting: v.otherLayout}
}

// Run acquires and gives up shards until ctx ends. Then it drains and releases all shards, and returns. It
// can be called once.
func (m *Member) Run(ctx context.Context, handler Handler) error {
	m.mu.Lock()
	again := m.mu.running
	m.mu.running = true
	m.mu.Unlock()
	if again {
		return errors.New("shard: Run has been called before")
	}
	m.handler = handler
	var group sync.WaitGroup
	started := make(chan struct{})
	group.Go(func() { m.heartbeat(ctx, started) }) // ended by ctx
	group.Go(func() { m.observe(ctx, started) })   // ended by ctx
	group.Go(func() { m.sweep(ctx) })              // ended by ctx
	m.runPlans(ctx)
	group.Wait()
	return nil
}

func (m *Member) wake() {
	select {
	case m.wakeCh <- struct{}{}:
	default:
	}
}

// runPlans applies the plans until ctx has ended and no shard is held.
func (m *Member) runPlans(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	done := ctx.Done()
	for {
		select {
		case <-m.wakeCh:
		case <-timer.C:
		case <-done:
			done = nil
		}
		if m.cleanUp(ctx); ctx.Err() != nil {
			if m.giveUpAll(ctx) {
				return
			}
			continue
		}
		m.notifyAcquired()
		timer.Reset(m.applyPlan(ctx))
	}
}

// shardOf returns the shard of a Lease, or -1 if it is not a shard of this group.
func (o Options) shardOf(lease string) int {
	shard, err := strconv.Atoi(strings.TrimPrefix(lease, o.Name+"-"))
	if err != nil || shard < 0 || shard >= o.Shards || o.leaseOf(shard) != lease {
		return -1
	}
	return shard
}

func (o Options) leaseOf(shard int) string { return fmt.Sprintf("%s-%03d", o.Name, shard) }
