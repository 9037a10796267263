// Package persist saves the objects of informers to a persistence.Backend for the next process.
package persist

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
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
	// View identifies the content.
	View   persistence.View
	Cache  *informer.Informer
	Health *health.Health
}

// Persister saves the objects of one informer. Events do not pass through it: it periodically compares the
// current snapshot with the last saved one. Replaced objects stay in memory until the next save.
type Persister struct {
	*SharedState
	source Source
	// disabledReason is the reason why no objects are persisted; empty if they are.
	disabledReason string

	// token is a mutex that is held during reads and saves, even longer than DiskTimeout. It guards state.
	token chan struct{}
	state struct {
		content persistence.StoredContent // nil before Open
		// saved is the stored content; nil if unknown. restorer belongs to the incarnation that saved it.
		saved    *persistedSnapshot
		restorer *restorer
		// acceptedRequests is the number of accepted requests at the last check of the cluster.
		acceptedRequests int64
		// retryAt is the time of the next attempt after a number of failures.
		retryAt  time.Time
		failures int
	}
	// finished makes the holder of the token close the content.
	finished atomic.Bool
	reported struct {
		sync.Mutex
		status status.Persistence
		logger klog.Logger // of the context of Start
	}
}

// maxPause is the pause after many failures. After the first failure it is twice the interval.
const maxPause = 5 * time.Minute

// DiskTimeout is the time that an informer waits for the backend. After it, the informer continues without
// persistence until the backend responds. Tests change it.
var DiskTimeout = 10 * time.Second

// ErrSlowDisk is the cause of a timeout of the backend.
var ErrSlowDisk = errors.New("the disk does not answer")

var errUnknownCluster = errors.New("cannot identify the cluster: the namespace kube-system cannot be read, " +
	"and the client is not from dynamicinformer.NewClient")

// NewDisabled returns a Persister that does nothing, and reports the reason.
func NewDisabled(reason string) *Persister {
	p := &Persister{disabledReason: reason}
	p.reported.status = status.Persistence{DisabledReason: reason}
	return p
}

// New returns a Persister for an informer.
func New(shared *SharedState, source Source) *Persister {
	p := &Persister{SharedState: shared, source: source, token: make(chan struct{}, 1)}
	p.reported.status = status.Persistence{Enabled: true}
	return p
}

// Start begins the periodic saves, and logs their failures to the logger of ctx.
func (p *Persister) Start(ctx context.Context) {
	if p.disabledReason == "" {
		p.reported.logger = klog.FromContext(ctx)
		p.schedule()
	}
}

// schedule starts the timer of the next save. Its delay is shorter than the interval: saving takes time.
func (p *Persister) schedule() { time.AfterFunc(p.interval*4/5, p.saveIfDue) } // ended by finished

func (p *Persister) saveIfDue() {
	if p.finished.Load() {
		return
	}
	defer p.schedule()
	p.save()
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

// release returns the token, and closes the content after Finish.
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
	default: // the new holder closes the content
	}
}

func (p *Persister) closeIfFinished() {
	if !p.finished.Load() {
		return
	}
	if p.state.content != nil {
		p.recordFailure(p.state.content.Close())
	}
	p.state.content, p.state.saved = nil, nil
}

// withToken calls f with the token and waits for its return, at most for DiskTimeout. After an error, f may
// still be running, or was not called.
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

// Finish saves the remaining changes and closes the content.
func (p *Persister) Finish() {
	if p.disabledReason != "" {
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

func (p *Persister) saveLocked(ctx context.Context) {
	persistable := p.source.Cache.PersistableContent()
	r, ok := persistable.State.(*restorer)
	if !ok && !persistable.Resuming {
		p.state.saved = nil // it would pin objects that the cache has dropped
	}
	// With one watch per namespace, some namespaces may stay unconfirmed for long. They are saved
	// unconfirmed once the cluster is verified.
	if !ok || persistable.Resuming && !r.verified.Load() || time.Now().Before(p.state.retryAt) {
		return
	}
	current := &persistedSnapshot{persistable.Snapshot, persistable.Namespaces}
	if saved := p.state.saved; saved != nil && saved.equal(current) && p.state.restorer == r {
		p.reportRestored(r)
		return
	}
	// AcceptedRequests includes the requests that filled the content.
	savedAt, acceptedRequests := time.Now(), p.source.Health.AcceptedRequests()
	p.saveTokens <- struct{}{} // another informer's save returns it
	defer func() { <-p.saveTokens }()
	checkpoint, err := p.write(ctx, current, r, acceptedRequests, savedAt)
	if err != nil {
		p.state.failures++
		pause := min(p.interval<<min(p.state.failures, 10), maxPause)
		p.state.saved, p.state.retryAt = nil, time.Now().Add(pause)
		p.recordFailure(p.errorf("persist", err))
		return
	}
	p.state.saved, p.state.restorer, p.state.failures = current, r, 0
	p.reported.Lock()
	defer p.reported.Unlock()
	p.reported.status.Checkpoint, p.reported.status.Err = checkpoint, nil
	p.reported.status.Saves++
}

// write saves the content of savedAt. acceptedRequests is the number of accepted requests by then.
func (p *Persister) write(ctx context.Context, current *persistedSnapshot, r *restorer,
	acceptedRequests int64, savedAt time.Time) (checkpoint persistence.Checkpoint, err error) {
	since := savedAt
	if p.state.acceptedRequests == acceptedRequests {
		since = time.Time{} // no response since the last check of the cluster
	}
	uid, err := p.cluster.verifiedUID(ctx, since, 0)
	if err != nil {
		return checkpoint, err
	}
	p.state.acceptedRequests = acceptedRequests
	endpoint := p.cluster.endpoint()
	if uid == "" && endpoint == "" {
		return checkpoint, errUnknownCluster
	}
	if err := p.openLocked(ctx); err != nil {
		return checkpoint, err
	}
	checkpoint = persistence.Checkpoint{
		ResourceVersion: strings.Clone(current.ResourceVersion()),
		APIVersion:      r.partition.Version, UID: r.uid,
		Kind: r.partition.Kind, Namespaced: r.partition.Namespaced,
		Cluster: uid, Endpoint: endpoint, Objects: current.countObjects(), Time: time.Now().UTC(),
	}
	if current.namespaces != nil {
		checkpoint.ResourceVersion, checkpoint.Namespaces = "", labels.Set(current.namespaces).String()
	}
	saved := p.state.saved
	if saved != nil && (!p.state.restorer.sameType(r) || !saved.isComparable(current)) {
		saved = nil
	}
	format := p.source.Cache.Store().Format()
	whole := saved == nil || p.state.content.NeedsRewrite()
	return checkpoint, p.state.content.Save(ctx, checkpoint, whole, func(put persistence.PutRecord) error {
		w := recordWriter{put: put}
		if whole {
			return w.writeAll(current)
		}
		return w.writeChanges(format, saved, current)
	})
}

func (p *Persister) openLocked(ctx context.Context) error {
	if p.state.content != nil {
		return nil
	}
	content, err := p.backend.Open(ctx, p.source.View)
	if err == nil {
		p.state.content = content
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
		utilruntime.HandleErrorWithLogger(p.reported.logger, err, "Cannot persist cached objects")
	}
	p.reported.status.Err, p.reported.status.Checkpoint = err, persistence.Checkpoint{}
	p.reported.status.Failures++
}
