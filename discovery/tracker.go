package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/queue"
	"github.com/crdcache/crdcache/internal/requests"
)

// Defaults of TrackerOptions.
const (
	// DefaultPollInterval is the mean time between discovery rounds without a trigger.
	DefaultPollInterval = 10 * time.Minute
	// DefaultBlindPollInterval is the mean time while CustomResourceDefinitions cannot be watched.
	DefaultBlindPollInterval = 30 * time.Second
	// DefaultDiscoveryLag is the time after which discovery no longer lists the type of a deleted CRD. In
	// practice this takes seconds.
	DefaultDiscoveryLag = time.Minute
)

// TrackerOptions adjusts a Tracker. The zero value is usable.
type TrackerOptions struct {
	// Client runs the rounds. Default: a new client without a disk cache. Shared clients share them.
	Client *Client
	// Dynamic watches CustomResourceDefinitions and APIServices. Default: a client for the same server.
	Dynamic dynamic.Interface
	// PollInterval is the mean time between discovery rounds while watches work; each is spread by a fifth.
	// Default DefaultPollInterval.
	PollInterval time.Duration
	// BlindPollInterval is the mean time in Polling mode. Default DefaultBlindPollInterval.
	BlindPollInterval time.Duration
	// DiscoveryLag is the time after the deletion of a CRD during which the Tracker ignores that discovery
	// still lists its type. After this time it runs discovery again; if that lists the type, another server
	// serves it. Default DefaultDiscoveryLag. Negative: no lag, as for test/testcluster.
	DiscoveryLag time.Duration
}

// Tracker follows the types that an API server serves, and notifies its subscribers of changes.
//
// It observes custom resources with a watch on CustomResourceDefinitions, without discovery requests. Other
// types come from discovery, which runs after changes of APIServices and periodically. Without permission to
// watch CRDs, it polls discovery for all types; see Mode. If discovery cannot confirm a group, its types
// remain, and discovery is repeated with pauses that grow from 1 s to 30 s. A list that lacks most of the
// known types is only accepted if the next one confirms it.
//
// All methods are safe for concurrent use. All except Run return immediately or when their context ends.
type Tracker struct {
	options        TrackerOptions
	roundRequested chan struct{} // capacity 1: a discovery round is requested
	crdDeleted     chan struct{} // capacity 1: a CRD was deleted
	runEnded       chan struct{} // closed when Run is about to return
	synced         chan struct{} // closed when the tracker is synced for the first time

	// apiServicesAnswered is closed by onAPIServices when APIServices were listed or cannot be.
	apiServicesAnswered chan struct{}
	onAPIServices       func()
	runCalled           atomic.Bool

	mu struct {
		sync.Mutex
		state             typeState
		subscriptions     map[*Subscription]struct{}
		snapshot          *Snapshot // of state, nil when it changed
		status            TrackerStatus
		ended             bool
		firstRoundStarted bool
		rounds            roundTimer
	}
}

// NewTracker returns a Tracker for the server of config, which it does not contact before Run. config may be
// nil if options has both a Client and a Dynamic.
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
		if options.Dynamic, err = requests.NewClient(config, nil); err != nil {
			return nil, fmt.Errorf("tracker: %w", err)
		}
	}
	options.PollInterval = cmp.Or(max(options.PollInterval, 0), DefaultPollInterval)
	options.BlindPollInterval = cmp.Or(max(options.BlindPollInterval, 0), DefaultBlindPollInterval)
	options.DiscoveryLag = max(cmp.Or(options.DiscoveryLag, DefaultDiscoveryLag), 0)
	t := &Tracker{
		options: options, roundRequested: make(chan struct{}, 1), crdDeleted: make(chan struct{},
			1), runEnded: make(chan struct{}), synced: make(chan struct{}),
		apiServicesAnswered: make(chan struct{}),
	}
	t.onAPIServices = sync.OnceFunc(func() { close(t.apiServicesAnswered) })
	t.mu.state = newTypeState(options.DiscoveryLag)
	t.mu.subscriptions = map[*Subscription]struct{}{}
	t.mu.status.Mode = Starting
	return t, nil
}

// Run follows the server until ctx ends. It returns when all goroutines of the tracker and of its
// subscriptions have ended, and therefore waits for handlers. Queued events are dropped, because the end of a
// tracker does not change types. It returns an error only if Run was called before.
func (t *Tracker) Run(ctx context.Context) error {
	if t.runCalled.Swap(true) {
		return errors.New("tracker: Run was called before")
	}
	var wg sync.WaitGroup
	client, restores := t.options.Dynamic, requests.NewRestoreDetector()
	definitions := requests.NewReader(client, restores, crd.GVR, unreadFields)
	apiServices := requests.NewReader(client, restores, apiServiceGVR, unreadMetadata)
	// All three end with ctx.
	wg.Go(func() { runReflector(ctx, definitions, crd.GVR, crdWatch{t}) })
	wg.Go(func() { runReflector(ctx, apiServices, apiServiceGVR, &apiServiceWatch{tracker: t}) })
	wg.Go(func() { t.discover(ctx) })
	wg.Wait()

	t.mu.Lock()
	t.mu.ended = true
	close(t.runEnded)
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

// Assume adds a type that the caller has found, such as with a RESTMapper, until Run observes whether the
// server serves it. Users of few types can thus run the tracker later. definition is the metadata of the
// type's CRD, or nil if it is unknown or there is none. If the tracker has found that the type does not
// exist, it runs discovery again.
func (t *Tracker) Assume(mapping *meta.RESTMapping, definition *metav1.PartialObjectMetadata) {
	t.update(func(s *typeState, _ *TrackerStatus) []Event {
		events := s.assume(mapping, definition)
		if _, exists := s.types[mapping.Resource.GroupResource()]; !exists {
			t.Refresh()
		}
		return events
	})
}

// Subscribe calls handler for every known type, and then for every change, in order, one at a time and
// without locks. The subscription ends with Stop or with the tracker. After the end of the tracker, Subscribe
// returns an ended subscription.
func (t *Tracker) Subscribe(handler func(Event)) *Subscription {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &Subscription{tracker: t, handler: handler, calls: queue.NewCalls()}
	if t.mu.ended {
		s.calls.Close()
		return s
	}
	replay := naming.Map(t.snapshotLocked().Types(),
		func(typ Type) Event { return Event{Action: Added, Type: typ} })
	if failures := t.failuresLocked(); failures.Err != nil || len(failures.FailedGroupVersions) > 0 {
		replay = append(replay, failures)
	}
	if t.mu.status.Synced {
		replay = append(replay, Event{Action: Synced})
	}
	s.push(replay)
	t.mu.subscriptions[s] = struct{}{}
	return s
}

func (t *Tracker) forgetEndedLocked() {
	maps.DeleteFunc(t.mu.subscriptions,
		func(s *Subscription, _ struct{}) bool { return queue.IsClosed(s.Done()) })
}

// Snapshot returns the current state.
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

// Status returns the status of the tracker and its sources.
func (t *Tracker) Status() TrackerStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.mu.status
	s.Types = len(t.mu.state.types)
	s.FailedGroupVersions = t.mu.state.failedGroupVersions
	return s
}

// WaitForSync waits until CRDs are listed or cannot be read, and one discovery round has succeeded. Otherwise
// it returns the error of ctx, joined with the last errors of the sources.
func (t *Tracker) WaitForSync(ctx context.Context) error {
	if queue.IsClosed(t.synced) {
		return nil
	}
	select {
	case <-t.synced:
		return nil
	case <-t.runEnded:
		return errors.New("tracker: ended before it was synced")
	case <-ctx.Done():
		s := t.Status()
		return errors.Join(fmt.Errorf("tracker: not synced: %w", ctx.Err()), s.CRDs.LastError,
			s.Discovery.LastError)
	}
}

// Schema reads the schema of a type from the server; nil for a type without a CRD.
func (t *Tracker) Schema(ctx context.Context, gvr schema.GroupVersionResource) (*crd.Schema, error) {
	definition, err := crd.Fetch(ctx, t.options.Dynamic, gvr.GroupResource())
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	version, ok := definition.Version(gvr.Version)
	if !ok {
		return nil, fmt.Errorf("the CRD %s has no version %s", definition.Name, gvr.Version)
	}
	return cmp.Or(version.Schema, &crd.Schema{PreserveUnknown: true}), nil
}

// Refresh requests a discovery round, without waiting for it.
func (t *Tracker) Refresh() { queue.Wake(t.roundRequested) }

// update changes the state and sends the events. All changes use it, so all subscribers see one order.
func (t *Tracker) update(change func(s *typeState, status *TrackerStatus) []Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.failuresLocked()
	events := change(&t.mu.state, &t.mu.status)
	t.mu.snapshot = nil
	if len(t.mu.state.recentlyDeletedCRDs) > 0 {
		queue.Wake(t.crdDeleted)
	}
	switch {
	case t.mu.state.crdsForbidden:
		t.mu.status.Mode = Polling
	case t.mu.state.crdsKnown:
		t.mu.status.Mode = Watching
	}
	becomesSynced := !t.mu.status.Synced && t.mu.state.synced()
	t.mu.status.Synced = t.mu.status.Synced || becomesSynced
	if after := t.failuresLocked(); fmt.Sprint(after.Err) != fmt.Sprint(before.Err) ||
		!slices.EqualFunc(after.FailedGroupVersions, before.FailedGroupVersions, GroupFailure.equal) {
		events = append(events, after)
	}
	if becomesSynced {
		events = append(events, Event{Action: Synced})
		close(t.synced)
	}
	if len(events) == 0 {
		return
	}
	t.forgetEndedLocked() // some are stopped by their handlers
	for s := range t.mu.subscriptions {
		s.push(events)
	}
}

func (t *Tracker) failuresLocked() Event {
	return Event{Action: FailuresChanged, FailedGroupVersions: t.mu.state.failedGroupVersions,
		Err: t.mu.status.err()}
}

func (t *Tracker) updateStatus(change func(*TrackerStatus)) {
	t.update(func(_ *typeState, status *TrackerStatus) []Event { change(status); return nil })
}

// discover runs discovery rounds until ctx ends: at the start, when requested, and periodically. The first
// round waits a short time for the first list of APIServices, so that no registration in between is missed.
func (t *Tracker) discover(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(roundInterval):
	case <-t.apiServicesAnswered:
	}
	t.mu.Lock()
	t.mu.firstRoundStarted = true
	t.mu.Unlock()
	for ctx.Err() == nil {
		if runAgain := t.runRound(ctx); !runAgain { // the client limits the rate
			t.awaitRound(ctx)
		}
	}
}

// awaitRound waits until a round is due or requested, or ctx ends. A round is also due when discovery no
// longer lags behind the deletion of a CRD.
func (t *Tracker) awaitRound(ctx context.Context) {
	pause, failed := t.pause()
	poll := time.Now().Add(pause)
	for {
		due := poll
		t.mu.Lock()
		at := t.mu.state.nextDiscoveryCheck()
		t.mu.Unlock()
		if !failed && !at.IsZero() && at.Before(due) {
			due = at
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(due)):
		case <-t.roundRequested:
		case <-t.crdDeleted:
			continue
		}
		return
	}
}

// runRound runs one discovery round, and reports whether another must follow immediately.
func (t *Tracker) runRound(ctx context.Context) (runAgain bool) {
	catalog, err := t.options.Client.Refresh(ctx)
	if ctx.Err() != nil {
		return false
	}
	t.update(func(s *typeState, status *TrackerStatus) (events []Event) {
		if err != nil {
			status.Discovery.LastError = err
		} else {
			status.Discovery.recordSuccess(time.Now())
			status.Discovery.Synced = true
			events, runAgain = s.applyCatalog(catalog)
		}
		t.mu.rounds.recordRound(err, len(s.failedGroupVersions))
		return events
	})
	return runAgain
}

// pause returns the time until the next round, and whether the last round failed.
func (t *Tracker) pause() (pause time.Duration, failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	interval := t.options.PollInterval
	if t.mu.status.Mode != Watching {
		interval = t.options.BlindPollInterval
	}
	return t.mu.rounds.pause(interval), t.mu.rounds.lastFailed
}

const (
	// extraRoundsAfterChange is the number of rounds after a changed APIService, because the API server
	// updates its discovery documents later.
	extraRoundsAfterChange = 3
	// maxRetryPause limits the pause after a round that left group versions unknown.
	maxRetryPause = 30 * time.Second
)

// roundTimer computes the pauses between discovery rounds.
type roundTimer struct {
	lastFailed  bool // the last round failed
	retries     int  // number of consecutive rounds without a final result
	extraRounds int  // number of rounds to do after a changed APIService
}

// recordRound records the result of a round; failed is the number of failed group versions.
func (r *roundTimer) recordRound(err error, failed int) {
	r.lastFailed = err != nil
	switch {
	case r.lastFailed || failed > 0:
		r.retries++
	case r.extraRounds > 0:
		r.extraRounds--
		r.retries++
	default:
		r.retries = 0
	}
}

// pause returns the time until the next round: usual, or less if the last result is not final.
func (r *roundTimer) pause(regular time.Duration) time.Duration {
	if r.lastFailed {
		regular = maxRetryPause
	}
	if r.retries > 0 {
		regular = min(regular, maxRetryPause, time.Second<<min(r.retries-1, 5))
	}
	return time.Duration(float64(regular) * (0.8 + 0.4*rand.Float64()))
}
