package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/queue"
	"github.com/crdcache/crdcache/internal/requests"
)

// Defaults of TrackerOptions.
const (
	// DefaultPollInterval is the mean time between two discovery rounds that nothing asked for.
	DefaultPollInterval = 10 * time.Minute
	// DefaultBlindPollInterval is the same while CustomResourceDefinitions cannot be watched.
	DefaultBlindPollInterval = 30 * time.Second
	// DefaultDiscoveryLag is how long discovery may go on listing a type whose CRD is deleted: that takes
	// seconds.
	DefaultDiscoveryLag = time.Minute
)

// TrackerOptions adjusts a Tracker. The zero value is usable.
type TrackerOptions struct {
	// Client does the discovery rounds. Default: a client of its own, without a disk cache. A shared
	// client shares its rounds.
	Client *Client
	// Dynamic watches CustomResourceDefinitions and APIServices. Default: one for the same server.
	Dynamic dynamic.Interface
	// PollInterval is the mean time between discovery rounds while watches work; each is spread by a
	// fifth. Default DefaultPollInterval.
	PollInterval time.Duration
	// BlindPollInterval is the same in Polling mode. Default DefaultBlindPollInterval.
	BlindPollInterval time.Duration
	// DiscoveryLag is how long a type whose CRD was deleted is not believed to exist just because discovery
	// lists it. After this time discovery is asked again, and somebody else serves a type that it lists.
	// Default DefaultDiscoveryLag; negative: discovery is right at once, as that of a readapi.Storage is.
	DiscoveryLag time.Duration
}

// Tracker knows at any time which types an API server has, and tells its subscribers what changes.
//
// Custom resources are learnt from a watch on CustomResourceDefinitions, without any discovery request.
// Everything else is learnt from discovery, asked when an APIService changes and polled slowly. Without
// the right to watch CRDs, everything is polled; see Mode. A group that discovery cannot confirm keeps
// its types, and discovery is asked again until it can, after pauses that grow from 1 s to 30 s.
// A list that lacks most of the known types is only believed when the next one says the same.
//
// All methods are safe for concurrent use, and all but Run return at once or with their context.
type Tracker struct {
	options TrackerOptions
	wake    chan struct{} // capacity 1: a discovery round is wanted
	buried  chan struct{} // capacity 1: a CRD was deleted
	ended   chan struct{} // closed when Run is about to return
	synced  chan struct{} // closed when the picture is complete for the first time

	// answered notes that APIServices were listed or could not be; first is closed then.
	answered func()
	first    chan struct{}

	mu struct {
		sync.Mutex
		state         state
		subscriptions map[*Subscription]struct{}
		snapshot      *Snapshot // of state, nil when it changed
		status        TrackerStatus
		running, over bool
		discovering   bool // the first round has begun
		pace          pace
	}
}

// NewTracker returns a Tracker for the server of config, which is not contacted before Run. config may be nil
// when options has both a Client and a Dynamic.
func NewTracker(config *rest.Config, options TrackerOptions) (*Tracker, error) {
	if config == nil && (options.Client == nil || options.Dynamic == nil) {
		return nil, errors.New("tracker: the REST config is nil")
	}
	var err error
	if options.Client == nil {
		if options.Client, err = NewClient(config, Options{}); err != nil {
			return nil, err
		}
	}
	if options.Dynamic == nil {
		if options.Dynamic, err = dynamic.NewForConfig(config); err != nil {
			return nil, fmt.Errorf("tracker: %w", err)
		}
	}
	if options.PollInterval <= 0 {
		options.PollInterval = DefaultPollInterval
	}
	if options.BlindPollInterval <= 0 {
		options.BlindPollInterval = DefaultBlindPollInterval
	}
	options.DiscoveryLag = max(cmp.Or(options.DiscoveryLag, DefaultDiscoveryLag), 0)
	t := &Tracker{
		options: options, wake: make(chan struct{}, 1), buried: make(chan struct{},
			1), ended: make(chan struct{}), synced: make(chan struct{}),
		first: make(chan struct{}),
	}
	t.answered = sync.OnceFunc(func() { close(t.first) })
	t.mu.state = newState(options.DiscoveryLag)
	t.mu.subscriptions = map[*Subscription]struct{}{}
	t.mu.status.Mode = Starting
	return t, nil
}

// Run follows the server until ctx ends, and returns when every goroutine of the tracker and of its
// subscriptions has ended; a handler that does not return therefore holds it up. Events that are still
// queued then are dropped: that a tracker ends says nothing about the types. The error is not nil only
// when Run was called before.
func (t *Tracker) Run(ctx context.Context) error {
	t.mu.Lock()
	if t.mu.running {
		t.mu.Unlock()
		return errors.New("tracker: Run was called before")
	}
	t.mu.running = true
	t.mu.Unlock()

	var wg sync.WaitGroup
	restores := requests.NewRestores()
	// All three end with ctx.
	wg.Go(func() { runReflector(ctx, t.options.Dynamic, restores, crd.GVR, t.crdStore(), t.crdReports()) })
	wg.Go(func() {
		runReflector(ctx, t.options.Dynamic, restores, apiServiceGVR, t.apiServiceStore(),
			t.apiServiceReports())
	})
	wg.Go(func() { t.discover(ctx) })
	wg.Wait()

	t.mu.Lock()
	t.mu.over = true
	close(t.ended)
	subscriptions := slices.Collect(maps.Keys(t.mu.subscriptions))
	t.mu.Unlock()
	for _, s := range subscriptions {
		s.Stop()
	}
	for _, s := range subscriptions {
		<-s.Done()
	}
	return nil
}

// Subscribe calls handler for every type that is known now, and then for every change, in order and
// one at a time. No lock is held during a call. The subscription ends with Stop or with the tracker;
// after that, Subscribe returns one that has ended.
func (t *Tracker) Subscribe(handler func(Event)) *Subscription {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &Subscription{tracker: t, handler: handler, calls: queue.NewCalls()}
	if t.mu.over {
		s.calls.Close()
		return s
	}
	var replay []Event
	for _, known := range t.snapshotLocked().Types() {
		replay = append(replay, Event{Kind: Added, Type: known})
	}
	if unknown := t.mu.state.unknown; len(unknown) > 0 {
		replay = append(replay, Event{Kind: Unknown, Unknown: unknown})
	}
	if t.mu.status.Synced {
		replay = append(replay, Event{Kind: Synced})
	}
	s.push(replay)
	t.mu.subscriptions[s] = struct{}{}
	return s
}

// forgetEnded removes the subscriptions whose handlers are not called any more.
func (t *Tracker) forgetEnded() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forgetEndedLocked()
}

func (t *Tracker) forgetEndedLocked() {
	maps.DeleteFunc(t.mu.subscriptions, func(s *Subscription, _ struct{}) bool { return s.ended() })
}

// Snapshot returns what is known now.
func (t *Tracker) Snapshot() *Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.snapshotLocked()
}

func (t *Tracker) snapshotLocked() *Snapshot {
	if t.mu.snapshot == nil {
		t.mu.snapshot = newSnapshot(&t.mu.state)
	}
	return t.mu.snapshot
}

// Status returns how the tracker is doing.
func (t *Tracker) Status() TrackerStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.mu.status
	s.Types = len(t.mu.state.types)
	s.Unknown = t.mu.state.unknown
	return s
}

// WaitForSync waits until the picture is complete for the first time: CRDs are listed, or may not be, and
// one discovery round has succeeded. The error is that of ctx, with what the sources last said.
func (t *Tracker) WaitForSync(ctx context.Context) error {
	select {
	case <-t.synced:
		return nil
	default:
	}
	select {
	case <-t.synced:
		return nil
	case <-t.ended:
		return errors.New("tracker: ended before it was synced")
	case <-ctx.Done():
		s := t.Status()
		return errors.Join(fmt.Errorf("tracker: not synced: %w", ctx.Err()), s.CRDs.LastError,
			s.Discovery.LastError)
	}
}

// Refresh asks for a discovery round now. It does not wait for it.
func (t *Tracker) Refresh() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// update applies a change to the state and passes on the events. It is the only way the state changes,
// so every subscriber sees the same order.
func (t *Tracker) update(change func(s *state, status *TrackerStatus) []Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	events := change(&t.mu.state, &t.mu.status)
	t.mu.snapshot = nil
	if len(t.mu.state.buried) > 0 {
		select {
		case t.buried <- struct{}{}:
		default:
		}
	}
	switch {
	case t.mu.state.crdsDenied:
		t.mu.status.Mode = Polling
	case t.mu.state.crdsKnown:
		t.mu.status.Mode = Watching
	}
	if !t.mu.status.Synced && t.mu.state.synced() {
		t.mu.status.Synced = true
		events = append(events, Event{Kind: Synced})
		close(t.synced)
	}
	if len(events) == 0 {
		return
	}
	t.forgetEndedLocked() // those that were stopped by their handlers
	for s := range t.mu.subscriptions {
		s.push(events)
	}
}

// discover does discovery rounds until ctx ends: at the start, when woken, and when the poll is due. The
// first one follows the first list of APIServices, so that none registered in between goes unnoticed; it
// does not wait long for it.
func (t *Tracker) discover(ctx context.Context) {
	timer := time.NewTimer(roundInterval)
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-t.first:
	}
	timer.Stop()
	t.mu.Lock()
	t.mu.discovering = true
	t.mu.Unlock()
	for {
		again := t.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if again {
			continue // the client keeps its distance
		}
		if !t.awaitRound(ctx) {
			return
		}
	}
}

// awaitRound waits until a round is due or requested, and returns false when ctx ends. A round is also due
// when discovery can no longer lag behind the deletion of a CRD.
func (t *Tracker) awaitRound(ctx context.Context) bool {
	pause, failed := t.pause()
	poll := time.Now().Add(pause)
	for {
		due := poll
		if at := t.exhumed(); !failed && !at.IsZero() && at.Before(due) {
			due = at
		}
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-t.wake:
		case <-t.buried:
			timer.Stop()
			continue
		}
		timer.Stop()
		return ctx.Err() == nil
	}
}

func (t *Tracker) exhumed() time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.state.exhumed()
}

// round does one discovery round, and returns whether another must follow at once.
func (t *Tracker) round(ctx context.Context) (again bool) {
	catalog, err := t.options.Client.Refresh(ctx)
	if ctx.Err() != nil {
		return false
	}
	t.update(func(s *state, status *TrackerStatus) (events []Event) {
		if err != nil {
			status.Discovery.LastError = err
		} else {
			status.Discovery.ok(time.Now())
			status.Discovery.Synced = true
			events, again = s.take(catalog)
		}
		t.mu.pace.done(err, len(s.unknown))
		return events
	})
	return again
}

// pause returns the time until the next round, and whether the last round failed.
func (t *Tracker) pause() (pause time.Duration, failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	usual := t.options.PollInterval
	if t.mu.status.Mode != Watching {
		usual = t.options.BlindPollInterval
	}
	return t.mu.pace.pause(usual), t.mu.pace.failed
}
