package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// Handler is told which shards to work in. Both funcs may be nil.
type Handler struct {
	// Acquired is told of shards that the replica holds from now on: at first mostly of all at once. It must
	// not block: nothing is acquired or given up meanwhile.
	Acquired func([]*Tenure)
	// Drain ends the work in a shard that the replica is about to give up, or has lost. It returns when no
	// work on the shard is under way; only then does the replica release its Lease, or take the shard again.
	// Nothing new may be begun. What is under way may go on until ctx ends: after Options.DrainTimeout, with
	// the tenure, or with the context of Run. Then it has to be told to end, and waited for. Several shards
	// may be drained at the same time.
	Drain func(ctx context.Context, tenure *Tenure)
}

// Assigner hands out shards: a Member by Leases, Fixed by position.
type Assigner interface {
	// Shards returns how many shards there are.
	Shards() int
	// Run hands out shards until ctx ends, and returns when all have been drained.
	Run(ctx context.Context, handler Handler) error
}

// Member is a replica among those that share shards by Leases. Make it with New. It is safe for concurrent
// use.
type Member struct {
	options  Options
	identity string
	id       string // the suffix of identity, and of the name of the member's Lease
	// client has a time limit for each request, so that one into a dead connection is not the last; watching
	// has none.
	client, watching coordinationv1client.LeasesGetter
	handler          Handler
	// now is the clock by which Leases of others expire; a test has clocks that do not run alike.
	now func() time.Time
	// changed has room for one, and has one whenever there may be something to do.
	changed chan struct{}

	mu struct {
		sync.Mutex
		running   bool
		sightings sightings
		// listed says that the sightings are complete, and kept so.
		listed bool
		seats  map[int]*seat
		// pauses says until when a shard is left alone, because electing has failed.
		pauses map[int]time.Time
		// reported is when the log was last told why a shard was not acquired.
		reported time.Time
	}
}

var _ Assigner = (*Member)(nil)

// New returns a Member, or what is wrong with the options.
func New(options Options) (*Member, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(options.Config)
	if config.RateLimiter == nil {
		config.QPS = -1
	}
	m := &Member{options: options, id: rand.String(10), now: time.Now, changed: make(chan struct{}, 1)}
	if err := m.connect(config, options.HTTPClient); err != nil {
		return nil, fmt.Errorf("shard: %w", err)
	}
	m.identity = options.Identity + "_" + m.id
	m.mu.sightings = sightings{options: options, leases: map[string]*sighting{}}
	m.mu.seats, m.mu.pauses = map[int]*seat{}, map[int]time.Time{}
	return m, nil
}

// connect makes the clients.
func (m *Member) connect(config *rest.Config, client *http.Client) (err error) {
	if client == nil {
		if client, err = rest.HTTPClientFor(config); err != nil {
			return err
		}
	}
	timed := *client
	timed.Timeout = m.options.RetryPeriod
	if m.client, err = coordinationv1client.NewForConfigAndClient(config, &timed); err != nil {
		return err
	}
	m.watching, err = coordinationv1client.NewForConfigAndClient(config, client)
	return err
}

// Identity returns what the Leases of the replica say.
func (m *Member) Identity() string { return m.identity }

// Shards returns how many shards there are.
func (m *Member) Shards() int { return m.options.Shards }

// Tenures returns the shards that the replica holds, in order.
func (m *Member) Tenures() []*Tenure {
	m.mu.Lock()
	defer m.mu.Unlock()
	var held []*Tenure
	for _, shard := range slices.Sorted(maps.Keys(m.mu.seats)) {
		if s := m.mu.seats[shard]; s.announced && s.tenure.Valid() {
			held = append(held, s.tenure)
		}
	}
	return held
}

// Status is what a replica sees of all.
type Status struct {
	// Members are the identities of the replicas that are there, sorted, with the own.
	Members []string
	// Holders has, for each shard, the identity of its holder; "": nobody's.
	Holders []string
	// Waiting says that the replica takes no shards, because there are replicas with another number of shards
	// or another layout.
	Waiting bool
}

// Status returns what the replica saw last; nothing before it has seen all Leases.
func (m *Member) Status() Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.mu.listed {
		return Status{}
	}
	v := m.mu.sightings.situation(m.identity, m.now())
	return Status{Members: v.members, Holders: v.holders, Waiting: v.foreign}
}

// Run is a member until ctx ends. Then it drains and releases all shards, and returns. It can be called once.
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
	present := make(chan struct{})
	group.Go(func() { m.bePresent(ctx, present) }) // ended by ctx
	group.Go(func() { m.observe(ctx, present) })   // ended by ctx
	group.Go(func() { m.sweep(ctx) })              // ended by ctx
	m.loop(ctx)
	group.Wait()
	return nil
}

// signal has the loop look again.
func (m *Member) signal() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// loop brings about what is planned, until ctx has ended and nothing is held.
func (m *Member) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	done := ctx.Done()
	for {
		select {
		case <-m.changed:
		case <-timer.C:
		case <-done:
			done = nil
		}
		if m.settle(ctx); ctx.Err() != nil {
			if m.vacate(ctx) {
				return
			}
			continue
		}
		m.announce()
		timer.Reset(m.act(ctx))
	}
}

// shardOf returns the number of the shard of a Lease; -1: it is none of this group.
func (o Options) shardOf(lease string) int {
	prefix := o.Name + "-"
	if len(lease) <= len(prefix) || lease[:len(prefix)] != prefix {
		return -1
	}
	shard, err := strconv.Atoi(lease[len(prefix):])
	if err != nil || shard < 0 || shard >= o.Shards || o.leaseOf(shard) != lease {
		return -1
	}
	return shard
}

// leaseOf returns the name of the Lease of a shard.
func (o Options) leaseOf(shard int) string { return fmt.Sprintf("%s-%03d", o.Name, shard) }

// leaseLock returns the lock of a Lease of the group.
func (m *Member) leaseLock(name string, labels map[string]string) resourcelock.LeaseLock {
	all := map[string]string{labelGroup: m.options.Name, labelShards: strconv.Itoa(m.options.Shards),
		labelLayout: m.options.Layout}
	maps.Copy(all, labels)
	return resourcelock.LeaseLock{
		LeaseMeta: metav1.ObjectMeta{Namespace: m.options.Namespace,
			Name: name}, Client: m.client, Labels: all,
		LockConfig: resourcelock.ResourceLockConfig{Identity: m.identity},
	}
}

// elect runs an elector for a lock until ctx ends or the Lease is lost.
func (m *Member) elect(ctx context.Context, lock resourcelock.Interface, started func()) {
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: lock.Describe(),
		LeaseDuration: m.options.LeaseDuration, RenewDeadline: m.options.RenewDeadline,
		RetryPeriod: m.options.retryPeriod(),
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { started() },
			OnStoppedLeading: func() {}},
	})
	if err != nil {
		panic(err) // the options have been checked
	}
	elector.Run(klog.NewContext(ctx, quiet(klog.FromContext(ctx))))
}
