// Package persist saves the cached objects of informers to a persistence.Backend, and restores them in the
// next process.
package persist

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/naming"
)

// SharedState is the state that the persisters of a factory share.
type SharedState struct {
	backend    persistence.Backend
	cluster    *cluster
	interval   time.Duration
	saveTokens chan struct{} // capacity 1: one informer saves at a time
}

// NewShared returns the shared state for a backend. Changed content is saved within interval.
func NewShared(backend persistence.Backend, client dynamic.Interface, interval time.Duration) *SharedState {
	return &SharedState{backend: backend, cluster: newCluster(client), interval: interval,
		saveTokens: make(chan struct{}, 1)}
}

// Source is the informer of the persisted objects.
type Source struct {
	GVR schema.GroupVersionResource
	// Key identifies the informer's options. It is the same in every process with these options.
	Key    string
	Cache  *informer.Informer
	Health *health.Health
	Logger *klog.Logger // nil: the global logger
}

// Persister saves the objects of one informer. Events do not pass through it: it periodically compares the
// current snapshot with the last saved one. Objects that were replaced in between therefore stay in memory
// until the next save.
type Persister struct {
	*SharedState
	source Source
	// disabled is the reason why no objects are persisted, or empty.
	disabled string

	// token is a mutex that is held during reads and saves, even longer than DiskTimeout. It guards state.
	token chan struct{}
	state struct {
		view persistence.StoredContent // nil before it is opened
		// saved is the stored content; nil if unknown. restorer belongs to the incarnation that saved it.
		saved    *persistedSnapshot
		restorer *restorer
		// acceptedRequests is the number of accepted requests at the last check of the cluster.
		acceptedRequests int64
		// retryAt is the time of the next attempt after a number of failures.
		retryAt  time.Time
		failures int
	}
	// finished makes the holder of the token close the view.
	finished atomic.Bool
	// compacting is set while compactBlocks runs.
	compacting atomic.Bool
	reported   struct {
		sync.Mutex
		status status.Persistence
	}
}

const (
	// maxPause is the pause after many failures. After the first failure it is twice the interval.
	maxPause = 5 * time.Minute
	// blockPause is the pause after each block in compactBlocks, which takes less than a millisecond.
	blockPause = 2 * time.Millisecond
)

// DiskTimeout is how long an informer waits for the backend. Then it continues without persistence until the
// backend responds. Tests change it.
var DiskTimeout = 10 * time.Second

// ErrSlowDisk is the cause of a timeout of the backend.
var ErrSlowDisk = errors.New("the disk does not answer")

var errUnknownCluster = errors.New("cannot identify the cluster: the namespace kube-system cannot be read, " +
	"and the client is not from dynamicinformer.NewClient")

// NewDisabled returns a Persister that does nothing, and reports the reason.
func NewDisabled(reason string) *Persister {
	p := &Persister{disabled: reason}
	p.reported.status = status.Persistence{DisabledReason: reason}
	return p
}

// New returns a Persister for an informer.
func New(shared *SharedState, source Source) *Persister {
	p := &Persister{SharedState: shared, source: source, token: make(chan struct{}, 1)}
	p.reported.status = status.Persistence{Enabled: true}
	return p
}

// Start begins the periodic saves.
func (p *Persister) Start() {
	if p.disabled == "" {
		p.schedule()
	}
}

// schedule starts the timer of the next save. Its delay is shorter than the interval, because saving takes
// time as well.
func (p *Persister) schedule() { time.AfterFunc(p.interval*4/5, p.saveIfDue) } // ended by finished

func (p *Persister) saveIfDue() {
	if p.finished.Load() {
		return
	}
	defer p.schedule()
	p.save()
	if p.compacting.CompareAndSwap(false, true) {
		p.compactBlocks()
	}
}

// save saves the changes since the last save, unless a read or save is running.
func (p *Persister) save() {
	select {
	case p.token <- struct{}{}:
	default:
		return
	}
	defer p.release()
	if !p.finished.Load() {
		p.saveLocked(context.Background())
	}
}

// compactBlocks moves the remaining objects of mostly replaced blocks to memory of their own (see
// store.CompactBlocks), block by block. It follows a save, because replaced objects stay in memory until
// then.
func (p *Persister) compactBlocks() {
	if !p.finished.Load() && p.source.Cache.Store().CompactBlocks() {
		time.AfterFunc(blockPause, p.compactBlocks)
		return
	}
	p.compacting.Store(false)
}

// release returns the token, and closes the view after Finish.
func (p *Persister) release() {
	p.closeIfFinished()
	<-p.token
	if !p.finished.Load() {
		return
	}
	select {
	case p.token <- struct{}{}: // Finish may have found the token taken
		p.closeIfFinished()
		<-p.token
	default: // the new holder closes the view
	}
}

func (p *Persister) closeIfFinished() {
	if !p.finished.Load() {
		return
	}
	if p.state.view != nil {
		p.recordFailure(p.state.view.Close())
	}
	p.state.view, p.state.saved = nil, nil
}

// withToken calls f with the token and waits for its return, but at most for DiskTimeout. After an error f
// may still run, or was not called.
func (p *Persister) withToken(ctx context.Context, f func(context.Context)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, DiskTimeout, ErrSlowDisk)
	defer cancel()
	select {
	case p.token <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	done := make(chan struct{})
	go func() { // ended by f, which waits for the disk
		defer close(done)
		defer p.release()
		f(ctx)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Finish saves the remaining changes and closes the view.
func (p *Persister) Finish() {
	if p.disabled != "" {
		return
	}
	err := p.withToken(context.Background(), func(context.Context) {
		p.finished.Store(true)
		p.state.retryAt = time.Time{}
		p.saveLocked(context.Background()) // continues in the background after a timeout
	})
	if err == nil {
		return
	}
	p.recordFailure(p.errorf("persist", err))
	p.finished.Store(true)
	select {
	case p.token <- struct{}{}: // the holder has just returned it
		p.release()
	default:
	}
}

// Status describes the state for users.
func (p *Persister) Status() status.Persistence {
	p.reported.Lock()
	defer p.reported.Unlock()
	return p.reported.status
}

// Idle reports whether no read or save is running. It is for tests.
func (p *Persister) Idle() bool { return len(p.token) == 0 }

// SavedInMemory reports whether the saved content is in memory, for comparison with the next one. It is for
// tests.
func (p *Persister) SavedInMemory(ctx context.Context) (inMemory bool, err error) {
	err = p.withToken(ctx, func(context.Context) { inMemory = p.state.saved != nil })
	return inMemory, err
}

func (p *Persister) saveLocked(ctx context.Context) {
	c := p.source.Cache.PersistableContent()
	r, ok := c.State.(*restorer)
	if !ok && !c.Resuming {
		p.state.saved = nil // it would pin objects that the cache has dropped
	}
	// With one watch per namespace, some namespaces may be unconfirmed for long. They are saved as they are
	// once the cluster is known to be the same.
	if !ok || c.Resuming && !r.verified.Load() || time.Now().Before(p.state.retryAt) {
		return
	}
	now := &persistedSnapshot{c.Snapshot, c.Namespaces}
	if saved := p.state.saved; saved != nil && saved.equal(now) && p.state.restorer == r {
		p.reportRestored(r)
		return
	}
	// The requests that brought the content have been counted.
	savedAt, accepted := time.Now(), p.source.Health.AcceptedRequests()
	p.saveTokens <- struct{}{} // another informer's save returns it
	defer func() { <-p.saveTokens }()
	at, err := p.write(ctx, now, r, accepted, savedAt)
	if err != nil {
		p.state.failures++
		pause := min(p.interval<<min(p.state.failures, 10), maxPause)
		p.state.saved, p.state.retryAt = nil, time.Now().Add(pause)
		p.recordFailure(p.errorf("persist", err))
		return
	}
	p.state.saved, p.state.restorer, p.state.failures = now, r, 0
	p.reported.Lock()
	defer p.reported.Unlock()
	p.reported.status.Checkpoint, p.reported.status.Err = at, nil
	p.reported.status.Saves++
}

// write saves a content that was read at savedAt, when the server had accepted this number of requests.
func (p *Persister) write(ctx context.Context, now *persistedSnapshot, r *restorer, accepted int64,
	savedAt time.Time) (at persistence.Checkpoint, err error) {
	since := savedAt
	if p.state.acceptedRequests == accepted {
		since = time.Time{} // no response since the last check of the cluster
	}
	uid, err := p.cluster.id(ctx, since, 0)
	if err != nil {
		return at, err
	}
	p.state.acceptedRequests = accepted
	endpoint := p.cluster.endpoint()
	if uid == "" && endpoint == "" {
		return at, errUnknownCluster
	}
	if err := p.openLocked(ctx); err != nil {
		return at, err
	}
	at = persistence.Checkpoint{
		ResourceVersion: strings.Clone(now.ResourceVersion()), APIVersion: r.partition.Version, UID: r.uid,
		Cluster: uid, Endpoint: endpoint, Objects: now.count(), Time: time.Now().UTC(),
	}
	if now.namespaces != nil {
		at.ResourceVersion, at.Namespaces = "", formatVersions(now.namespaces)
	}
	saved := p.state.saved
	if saved != nil && (!p.state.restorer.sameType(r) || !saved.isComparable(now)) {
		saved = nil
	}
	format := p.source.Cache.Store().Format()
	if blocks, ok := p.state.view.(persistence.BlockContent); ok {
		rewrite := saved == nil || blocks.NeedsRewrite()
		return at, blocks.SaveBlocks(ctx, at, rewrite, func(w persistence.BlockWriter) error {
			if rewrite {
				return writeBlocks(w, now)
			}
			return writeChanges(w, format, saved, now)
		})
	}
	return at, p.state.view.Save(ctx, at, saved == nil, func(w persistence.Writer) error {
		if saved == nil {
			return writeAll(w, now.sorted())
		}
		return writeChanges(w, format, saved, now)
	})
}

func (p *Persister) openLocked(ctx context.Context) error {
	if p.state.view != nil {
		return nil
	}
	view, err := p.backend.Open(ctx, p.source.Key)
	if err == nil {
		p.state.view = view
	}
	return err
}

// reportRestored reports the restored checkpoint, unless a newer one was reported. A list can confirm
// restored objects as well as a watch.
func (p *Persister) reportRestored(r *restorer) {
	p.reported.Lock()
	defer p.reported.Unlock()
	if p.reported.status.Checkpoint == (persistence.Checkpoint{}) && r.restored != nil {
		p.reported.status.Checkpoint = *r.restored
	}
}

func (p *Persister) errorf(verb string, err error) error {
	return fmt.Errorf("%s %s: %w", verb, naming.FormatType(p.source.GVR), err)
}

// recordFailure reports an error, if there is one. It logs only the first of consecutive errors.
func (p *Persister) recordFailure(err error) {
	if err == nil {
		return
	}
	p.reported.Lock()
	defer p.reported.Unlock()
	if p.reported.status.Err == nil {
		if p.source.Logger != nil {
			utilruntime.HandleErrorWithLogger(*p.source.Logger, err, "Cannot persist cached objects")
		} else {
			utilruntime.HandleError(err) //nolint:staticcheck // saves run without a context
		}
	}
	p.reported.status.Err, p.reported.status.Checkpoint = err, persistence.Checkpoint{}
	p.reported.status.Failures++
}
