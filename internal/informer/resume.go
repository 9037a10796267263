package informer

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/store"
)

// Past is what an earlier process kept of a part.
type Past interface {
	// Recall returns what was kept, or nil where nothing fits what is followed now. It is called once before
	// the server has answered and once after that, when more is known of the server: what it returned before
	// counts no more if it returns nil then.
	Recall(ctx context.Context, answered bool) *Kept
	// Shows is told whether the cache shows what was kept, as long as that is not confirmed.
	Shows(shows bool)
	// Confirmed is told that what was kept, with what has happened since, is current.
	Confirmed()
}

// Kept is a content of an earlier process.
type Kept struct {
	Items []Item
	// ResourceVersion is the one that a watch can go on from; or Namespaces has that of each namespace.
	ResourceVersion string
	Namespaces      map[string]string
}

// VersionAsker is a ListerWatcher that can ask how far the server has come.
type VersionAsker interface {
	cache.ListerWatcherWithContext
	// CurrentVersion returns the resource version that the server has come to. It asks again, after a pause,
	// until the server answers or ctx ends.
	CurrentVersion(ctx context.Context) (string, error)
}

// Watches that go on from what an earlier process kept last for a few seconds: API servers send a bookmark
// two seconds before the end of a watch, and otherwise only about once a minute. A watch of less than three
// seconds has none.
var proofSeconds = int64(3)

// proofWatches is how many of these may end without a proof before everything is listed.
const proofWatches = 4

// resumption goes on from what an earlier process kept. What is kept is shown, but neither counts as synced
// nor is told to handlers before it is known to be current: when the server has come no further, or when the
// watch from the kept version has brought an event or a bookmark of the version that the server had come to
// when it was asked. That a watch is accepted is no proof: events may be on their way.
type resumption struct {
	*generation
	// target is where events go: the generation, or one of its parts.
	target target
	part   *part // nil: there is one for everything
	lw     VersionAsker
	past   Past
	// shows says that the store holds what was kept.
	shows bool
	// version is what the content has come to, goal what it has to come to.
	version, goal string
}

// resume returns the resource version to watch from. It is empty where everything is to be listed.
func (i *Informer) resume(ctx context.Context, g *generation, p Part) (version string) {
	lw, ok := p.ListerWatcher.(VersionAsker)
	if p.Past == nil || !ok || i.tellsOfObjects() {
		return ""
	}
	// A panic of an index function has the type listed, as in listAndWatch.
	defer utilruntime.HandleCrashWithContext(ctx)
	r := &resumption{generation: g, target: g, lw: lw, past: p.Past}
	return r.resume(ctx)
}

// resume returns the resource version to watch from. It is empty where everything is to be listed.
func (r *resumption) resume(ctx context.Context) (version string) {
	why, err := r.run(ctx)
	if err == nil && why == "" {
		return r.version
	}
	if err == nil && r.shows {
		klog.FromContext(ctx).Info("Listing what was kept by an earlier process", "reflector",
			r.informer.reflectorName(), "why", why)
	}
	return ""
}

// tellsOfObjects reports whether somebody takes what the store shows for current, as an earlier generation
// has left it. What was kept may be older than that, and handlers would hear of it once more.
func (i *Informer) tellsOfObjects() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.synced.Load().reached() || i.store.Snapshot().Len() > 0
}

// run returns why everything is to be listed: empty when the content is current. The error is that of ctx, or
// of a generation that is over.
func (r *resumption) run(ctx context.Context) (why string, err error) {
	if r.part == nil {
		// The server may stay away for long, when nothing but the store should hold what was kept.
		if err := r.show(r.past.Recall(ctx, false)); err != nil {
			return "", err
		}
	}
	if r.goal, err = r.lw.CurrentVersion(ctx); err != nil {
		return "", err
	}
	confirmed := r.past.Recall(ctx, true)
	if confirmed == nil {
		r.hide()
		return "what was kept is of another server or type", nil
	}
	if !r.shows {
		if err := r.show(confirmed); err != nil {
			return "", err
		}
	}
	for range proofWatches {
		order, err := compareVersions(r.version, r.goal)
		switch {
		case err != nil:
			return err.Error(), nil
		case order > 0:
			return fmt.Sprintf("the server has come to version %s only, and not to %s", r.goal,
				r.version), nil
		case order == 0:
			return "", r.confirm(ctx)
		}
		if why, err := r.watch(ctx); why != "" || err != nil || !r.unproven() {
			return why, err
		}
	}
	return "no watch has proved it to be current", nil
}

// show has the store hold what was kept.
func (r *resumption) show(kept *Kept) error {
	if kept == nil {
		return nil
	}
	i := r.informer
	keyed := make([]store.Keyed, len(kept.Items))
	for k, item := range kept.Items {
		key, err := i.keyOf(item)
		if err != nil {
			return err
		}
		keyed[k] = store.Keyed{Key: key, Item: item}
	}
	for {
		batch := i.store.PrepareAll(keyed)
		done, err := r.commitKept(batch, kept.ResourceVersion)
		if done || err != nil {
			r.version, r.shows = kept.ResourceVersion, done
			if done {
				r.past.Shows(true)
			}
			return err
		}
	}
}

func (r *resumption) commitKept(batch *store.Batch, version string) (bool, error) {
	i := r.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != r.generation {
		return false, ErrGenerationOver
	}
	if !i.store.Restore(batch, version) {
		return false, nil
	}
	i.mu.unconfirmed, i.mu.wholeOf = unconfirmed{all: true, past: r.generation.past}, r.generation.past
	i.mu.log.reset(version)
	return true, nil
}

// hide empties the store again, which nobody was told of.
func (r *resumption) hide() {
	if !r.shows {
		return
	}
	if r.part != nil {
		r.part.hide()
		return
	}
	i := r.informer
	i.mu.Lock()
	if i.mu.current == r.generation { // or the next one has hidden it
		i.dropUnconfirmedLocked()
	}
	i.mu.Unlock()
	r.past.Shows(false)
}

// unproven reports whether the content still has to be proved current.
func (r *resumption) unproven() bool {
	order, err := compareVersions(r.version, r.goal)
	return err != nil || order < 0
}

// watch goes on from the version that was come to, until the content is proved to be current, when it is
// confirmed, or the watch has ended. It returns why everything is to be listed, if it is.
func (r *resumption) watch(life context.Context) (why string, err error) {
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	options := metav1.ListOptions{ResourceVersion: r.version, TimeoutSeconds: &proofSeconds,
		AllowWatchBookmarks: true}
	w, err := r.lw.WatchWithContext(ctx, options)
	if err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		if isPassing(err) {
			return "", sleep(ctx, refusedPause)
		}
		return err.Error(), nil
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case event, ok := <-w.ResultChan():
			if !ok {
				return "", context.Cause(ctx)
			}
			if why, err := r.take(event); why != "" || err != nil {
				return why, err
			}
			if !r.unproven() {
				return "", r.confirm(life)
			}
		}
	}
}

// refusedPause comes after a watch that a server refuses for now. It is a variable for the sake of tests.
var refusedPause = time.Second

// isPassing reports whether a server refuses a watch only for now: it is overloaded, or has just started.
// What is kept is worth asking again for; listing everything would not be less work for it.
func isPassing(err error) bool {
	return apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsServerTimeout(err)
}

// sleep returns after a pause, or with the context's cause.
func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// take has an event take effect. It returns why it cannot.
func (r *resumption) take(event watch.Event) (why string, err error) {
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object).Error(), nil
	}
	object, err := meta.Accessor(event.Object)
	if err != nil || isTable(event.Object) {
		return "an event is not of an object", nil
	}
	version := object.GetResourceVersion()
	if order, err := compareVersions(version, r.version); err != nil {
		return err.Error(), nil
	} else if order < 0 {
		return fmt.Sprintf("version %s follows version %s", version, r.version), nil
	}
	switch event.Type {
	case watch.Added:
		err = r.target.Add(event.Object)
	case watch.Modified:
		err = r.target.Update(event.Object)
	case watch.Deleted:
		err = r.target.Delete(event.Object)
	case watch.Bookmark:
		err = r.target.Bookmark(version)
	}
	r.version = version
	return "", err
}

// confirm records that the content is current: handlers get it as their initial list, and the informer has
// synced.
func (r *resumption) confirm(ctx context.Context) error {
	if r.part != nil {
		if err := r.part.confirm(); err != nil {
			return err
		}
	} else {
		if err := r.confirmAll(); err != nil {
			return err
		}
		r.past.Confirmed()
		r.announce()
	}
	if r.informer.store.ExtractsBlocks() {
		r.informer.workers.Go(func() { r.unfold(ctx) }) // ended by ctx, with the generation
	}
	return nil
}

// unfoldPause is between two slices of unfold, which take less than a millisecond.
const unfoldPause = 2 * time.Millisecond

// unfold gives objects that came in blocks memory of their own, until that is done or ctx ends: what is read
// again and again should not have to be found in its block each time.
func (r *resumption) unfold(ctx context.Context) {
	pause := time.NewTimer(unfoldPause)
	defer pause.Stop()
	for next := r.informer.store.ExtractBlocks(0); next != 0; next = r.informer.store.ExtractBlocks(next) {
		pause.Reset(unfoldPause)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

func (r *resumption) confirmAll() error {
	i := r.informer
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.current != r.generation {
		return ErrGenerationOver
	}
	i.mu.unconfirmed = unconfirmed{}
	now := i.store.Snapshot()
	if len(i.mu.handlers) == 0 {
		i.events.adds.Add(int64(now.Len()))
		r.recordListLocked(nil, true)
		return nil
	}
	changes := make([]store.Change, 0, now.Len())
	for key, item := range now.All {
		changes = append(changes, store.Change{Key: key, New: item})
	}
	r.recordListLocked(changes, true)
	return nil
}
