package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/follow"
	"github.com/crdcache/crdcache/internal/informer"
)

// keeping is what the informers of a factory share to keep what they hold.
type keeping struct {
	persistence.Backend
	cluster  *cluster
	interval time.Duration
	// saving holds a token while an informer saves: one at a time does.
	saving chan struct{}
}

// newKeeping returns nil where nothing is to be kept.
func newKeeping(options Options, client dynamic.Interface) *keeping {
	if options.Persistence == nil {
		return nil
	}
	return &keeping{
		Backend: options.Persistence, cluster: newCluster(client), interval: options.PersistenceInterval,
		saving: make(chan struct{}, 1),
	}
}

// keeper keeps what one informer holds. No event passes it: now and then it compares the present content,
// which never changes, with the one that it saved last. What it keeps in memory for that is what the changes
// between the two have replaced.
type keeper struct {
	*keeping
	informer *Informer
	key      string
	// why says why nothing is kept; empty where it is.
	why string

	// own holds a token while somebody reads or saves, who may be held up by the disk for as long as that
	// does not answer, and guards mine.
	own  chan struct{}
	mine struct {
		view persistence.View // nil: not claimed
		// saved is what is kept, as far as it is known; nil: not known.
		saved *keptContent
		// of is what saved was brought by.
		of *past
		// answered is how many requests had been answered when it was last known that the cluster is the same
		// as at first.
		answered int64
		// due is when to try again after a number of failures.
		due      time.Time
		failures int
	}
	// finished says that whoever gives back the token gives up the view.
	finished atomic.Bool
	// relieving says that relieve is under way.
	relieving atomic.Bool
	told      struct {
		sync.Mutex
		status status.Persistence
	}
}

// longestPause is how long nothing is tried after many failures. After the first it is twice the interval.
const longestPause = 5 * time.Minute

// diskPatience is how long the informer waits for what reads or saves: it goes on then as if nothing were
// kept, until the disk answers.
var diskPatience = 10 * time.Second

var errSlowDisk = errors.New("the disk does not answer")

// keepsNothing is the keeper of all informers of factories that have no Persistence.
var keepsNothing = idleKeeper("the factory has no Persistence")

// idleKeeper returns a keeper that keeps nothing, and says why.
func idleKeeper(why string) *keeper {
	k := &keeper{why: why}
	k.told.status = status.Persistence{Why: why}
	return k
}

func newKeeper(i *Informer) *keeper {
	if i.source.keeping == nil {
		return keepsNothing
	}
	if why := i.options.whyNotKept(i.gvr); why != "" {
		return idleKeeper(why)
	}
	k := &keeper{informer: i, keeping: i.source.keeping, own: make(chan struct{}, 1),
		key: i.options.persistenceKey(i.gvr)}
	k.told.status = status.Persistence{Kept: true}
	return k
}

var secrets = schema.GroupResource{Resource: "secrets"}

// whyNotKept says why what the options describe is not kept; empty where it is.
func (o ResourceOptions) whyNotKept(gvr schema.GroupVersionResource) string {
	switch {
	case o.Persist != nil && !*o.Persist:
		return "ResourceOptions.Persist says so"
	case o.Persist == nil && gvr.GroupResource() == secrets:
		return "Secrets are kept only where ResourceOptions.Persist says so"
	case o.Transform != nil && !isStripManagedFields(o.Transform):
		return "it has a Transform, which may be another one in the next process"
	case o.TweakListOptions != nil:
		return "it has TweakListOptions, which may be others in the next process"
	case o.Shard.followed() != nil:
		return "it is a shard, which may be another one in the next process"
	case o.matchesNothing():
		return "its selector matches nothing"
	}
	return ""
}

// persistenceKey identifies what the options describe beyond the process.
func (o ResourceOptions) persistenceKey(gvr schema.GroupVersionResource) string {
	view := o.view()
	content := "whole"
	if view.storage.Mode == StorageMetadata {
		content = StorageMetadata.String()
	}
	prune := o.Prune
	if isStripManagedFields(o.Transform) {
		prune.Presets = append(slices.Clone(prune.Presets), PruneManagedFields)
	}
	return fmt.Sprintf("3 %q %q %q %q %q %q %q %s", gvr.Group, gvr.Version, gvr.Resource, view.versions,
		view.namespaces, view.labels, view.fields, content+" "+prune.key())
}

// start has the content saved from now on.
func (k *keeper) start() {
	if k.why == "" {
		k.next()
	}
}

// next has another look later.
func (k *keeper) next() { time.AfterFunc(k.pause(), k.tick) } // the last of which finds that it is finished

// pause is between two looks. What has changed since a look is behind by that, and by what saving takes.
func (k *keeper) pause() time.Duration { return k.interval * 4 / 5 }

func (k *keeper) tick() {
	if k.finished.Load() {
		return
	}
	defer k.next()
	k.look()
	if k.relieving.CompareAndSwap(false, true) {
		k.relieve()
	}
}

// look saves what has changed since the last look.
func (k *keeper) look() {
	select {
	case k.own <- struct{}{}:
	default: // somebody is reading or saving, and perhaps for long
		return
	}
	defer k.giveBack()
	if !k.finished.Load() {
		k.saveLocked()
	}
}

// relievePause is between two blocks that relieve is done with, each of which takes less than a millisecond.
const relievePause = 2 * time.Millisecond

// relieve gives objects memory of their own whose blocks have been replaced but for them (see store.Relieve),
// block by block, until there is none or the keeper is finished. It comes behind a save: what has been
// replaced since is in memory anyway.
func (k *keeper) relieve() {
	if !k.finished.Load() && k.informer.core.Store().Relieve() {
		time.AfterFunc(relievePause, k.relieve)
		return
	}
	k.relieving.Store(false)
}

// giveBack gives back the token.
func (k *keeper) giveBack() {
	k.giveUpFinished()
	<-k.own
	if !k.finished.Load() {
		return
	}
	select {
	case k.own <- struct{}{}: // it may have been finished by somebody who found the token taken
		k.giveUpFinished()
		<-k.own
	default: // whoever has it gives up the view
	}
}

// giveUpFinished gives up the view of a keeper that is finished.
func (k *keeper) giveUpFinished() {
	if !k.finished.Load() {
		return
	}
	if k.mine.view != nil {
		k.note(k.mine.view.Close())
	}
	k.mine.view, k.mine.saved = nil, nil
}

// do calls f with the token, and returns when it has returned. With an error it does not wait for f any more,
// if it has been called at all.
func (k *keeper) do(ctx context.Context, f func()) error {
	ctx, cancel := context.WithTimeoutCause(ctx, diskPatience, errSlowDisk)
	defer cancel()
	select {
	case k.own <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	done := make(chan struct{})
	go func() { // ended by f, which a disk that does not answer may hold up
		defer close(done)
		defer k.giveBack()
		f()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// finish saves what is left to save, and gives the view up.
func (k *keeper) finish() {
	if k.why != "" {
		return
	}
	err := k.do(context.Background(), func() {
		k.finished.Store(true)
		k.mine.due = time.Time{}
		k.saveLocked()
	})
	if err == nil {
		return
	}
	k.note(fmt.Errorf("keeping %s: %w", formatGVR(k.informer.gvr), err))
	k.finished.Store(true)
	select {
	case k.own <- struct{}{}: // it has just been given back
		k.giveBack()
	default:
	}
}

// saveLocked saves what has changed since the last time.
func (k *keeper) saveLocked() {
	c := k.informer.core.Checkpoint()
	of, ok := c.Of.(*past)
	if !ok && !c.Resuming {
		k.mine.saved = nil // or it would hold objects in memory that nobody shows any more
	}
	// Of namespaces that are read one by one, some may not be confirmed for long. They are kept as they are,
	// when it is known that this is their cluster.
	if !ok || c.Resuming && !of.verified.Load() || time.Now().Before(k.mine.due) {
		return
	}
	now := &keptContent{c.Now, c.Namespaces}
	if was := k.mine.saved; was != nil && was.isAt(now) && k.mine.of == of {
		k.tellRecalled(of)
		return
	}
	taken, answered := time.Now(), k.informer.health.Answered() // and so of all that has brought the content
	// given back by whoever saves, in as much time as that takes
	k.saving <- struct{}{}
	defer func() { <-k.saving }()
	at, err := k.save(now, of, answered, taken)
	if err != nil {
		k.mine.failures++
		pause := min(k.interval<<min(k.mine.failures, 10), longestPause)
		k.mine.saved, k.mine.due = nil, time.Now().Add(pause)
		k.note(fmt.Errorf("keeping %s: %w", formatGVR(k.informer.gvr), err))
		return
	}
	k.mine.saved, k.mine.of, k.mine.failures = now, of, 0
	k.told.Lock()
	defer k.told.Unlock()
	k.told.status.Checkpoint, k.told.status.Err = at, nil
	k.told.status.Saves++
}

// tellRecalled tells of what was recalled, if nothing has been told of yet: a list may show that it is
// current as well as a watch does.
func (k *keeper) tellRecalled(of *past) {
	k.told.Lock()
	defer k.told.Unlock()
	if k.told.status.Checkpoint == (persistence.Checkpoint{}) && of.at != nil {
		k.told.status.Checkpoint = *of.at
	}
}

// errNoCluster is for a server that is not told apart from others.
var errNoCluster = errors.
	New("it is not known which cluster this is: the namespace kube-system cannot be read, and the client is not one of this package")

// save saves a content that was taken then, and brought by no more than that many answers.
func (k *keeper) save(now *keptContent, of *past, answered int64,
	taken time.Time) (persistence.Checkpoint, error) {
	since := taken
	if k.mine.answered == answered {
		since = time.Time{} // all of it came from where the last one did
	}
	uid, err := k.cluster.id(context.Background(), since, 0) // which has patience of its own
	if err != nil {
		return persistence.Checkpoint{}, err
	}
	k.mine.answered = answered
	if uid == "" && k.cluster.endpoint == "" {
		return persistence.Checkpoint{}, errNoCluster
	}
	if err := k.claimLocked(); err != nil {
		return persistence.Checkpoint{}, err
	}
	at := persistence.Checkpoint{
		ResourceVersion: strings.Clone(now.ResourceVersion()), Version: of.version, UID: of.uid,
		Cluster: uid, Endpoint: k.cluster.endpoint, Objects: now.count(), Time: time.Now().UTC(),
	}
	if now.namespaces != nil {
		at.ResourceVersion, at.Namespaces = "", formatVersions(now.namespaces)
	}
	saved := k.mine.saved
	if k.mine.of != of && saved != nil && (k.mine.of == nil || k.mine.of.version != of.version ||
		k.mine.of.uid != of.uid) {
		saved = nil // of another generation, in another form perhaps
	}
	if saved != nil && !saved.comparable(now) {
		saved = nil
	}
	if blocks, ok := k.mine.view.(persistence.BlockView); ok {
		whole := saved == nil || blocks.Full()
		return at, blocks.SaveBlocks(at, whole, func(w persistence.BlockWriter) error {
			if whole {
				return writeBlocks(w, now)
			}
			return k.writeChanges(w, saved, now)
		})
	}
	return at, k.mine.view.Save(at, saved == nil, func(w persistence.Writer) error {
		if saved == nil {
			return writeAll(w, now)
		}
		return k.writeChanges(w, saved, now)
	})
}

// claimLocked claims the view.
func (k *keeper) claimLocked() error {
	if k.mine.view != nil {
		return nil
	}
	view, err := k.View(k.key)
	if err != nil {
		return err
	}
	k.mine.view = view
	return nil
}

// note records what went wrong, if anything did.
func (k *keeper) note(err error) {
	if err == nil {
		return
	}
	k.told.Lock()
	defer k.told.Unlock()
	if k.told.status.Err == nil { // once, and not each minute
		k.informer.logError(err)
	}
	k.told.status.Err, k.told.status.Checkpoint = err, persistence.Checkpoint{}
	k.told.status.Failures++
}

// Persistence describes how the informer persists its objects (see Options.Persistence).
func (i *Informer) Persistence() status.Persistence { return i.keeper.report() }

func (k *keeper) report() status.Persistence {
	k.told.Lock()
	defer k.told.Unlock()
	return k.told.status
}

// past implements follow.Follower.Past.
func (k *keeper) past(p follow.Part, uid types.UID) informer.Past {
	if k.why != "" {
		return nil
	}
	k.told.Lock()
	defer k.told.Unlock()
	k.told.status.Resumed = false
	return &past{keeper: k, generation: p.Generation, version: p.Version, uid: uid, several: p.Several}
}
