package shard

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// bePresent renews the Lease by which others know of the replica until ctx ends, and removes it then. present
// is closed when it is there for the first time.
func (m *Member) bePresent(ctx context.Context, present chan<- struct{}) {
	name := m.options.Name + "-member-" + m.id
	once := sync.OnceFunc(func() { close(present) })
	for ctx.Err() == nil {
		m.elect(ctx, &presence{LeaseLock: m.leaseLock(name, nil), logger: klog.FromContext(ctx)}, once)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.options.RetryPeriod)
	defer cancel()
	m.remove(ctx, name, metav1.DeleteOptions{})
}

// presence is the Lease of a member as an elector sees it. Its failures are logged: a replica that cannot
// write it takes no shards.
type presence struct {
	resourcelock.LeaseLock
	logger klog.Logger
}

// Create creates the Lease.
func (p *presence) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return p.report(ctx, p.LeaseLock.Create(ctx, record))
}

// Update writes the Lease.
func (p *presence) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return p.report(ctx, p.LeaseLock.Update(ctx, record))
}

// Get reads the Lease.
func (p *presence) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := p.LeaseLock.Get(ctx)
	if !apierrors.IsNotFound(err) {
		_ = p.report(ctx, err)
	}
	return record, raw, err
}

// report logs an error, unless the end came first, and returns it.
func (p *presence) report(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		p.logger.Error(err, "The replica cannot say that it is there, and shares no shards until it can",
			"lease", p.Describe())
	}
	return err
}

// remove deletes the Lease of a member.
func (m *Member) remove(ctx context.Context, name string, options metav1.DeleteOptions) {
	err := m.client.Leases(m.options.Namespace).Delete(ctx, name, options)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		klog.FromContext(ctx).Info("The Lease of a member was not removed", "lease", name, "err", err)
	}
}

// sweep removes, now and then, the Leases of members that went without doing so. It ends with ctx.
func (m *Member) sweep(ctx context.Context) {
	ticker := time.NewTicker(m.options.LeaseDuration)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		m.mu.Lock()
		m.mu.sightings.forget()
		names := m.mu.sightings.abandoned(m.now())
		m.mu.Unlock()
		for _, name := range names {
			m.removeAbandoned(ctx, name)
		}
	}
}

// removeAbandoned deletes the Lease of a member if it is as it was when it was last seen.
func (m *Member) removeAbandoned(ctx context.Context, name string) {
	m.mu.Lock()
	known := m.mu.sightings.leases[name]
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, m.options.RetryPeriod)
	defer cancel()
	if known != nil && known.resourceVersion != "" {
		m.remove(
			ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
				ResourceVersion: &known.resourceVersion}})
	}
}

// observe follows the Leases of the group until ctx ends. It begins when the own is there: of two replicas
// that begin at the same time, at least one sees the other then, before it takes anything.
func (m *Member) observe(ctx context.Context, present <-chan struct{}) {
	select {
	case <-present:
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		if err := m.follow(ctx); err != nil {
			m.mu.Lock()
			m.mu.listed = false
			m.mu.Unlock()
			if ctx.Err() != nil {
				return // that is why it failed
			}
			klog.FromContext(ctx).Info("Following the Leases failed", "group", m.options.Name, "err", err)
			pause(ctx, m.options.RetryPeriod/4+rand.N(m.options.RetryPeriod/4+1))
		}
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, period time.Duration) {
	timer := time.NewTimer(period)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// follow lists and watches once, until the watch ends. The own Lease is renewed each retry period, and that
// shows in the watch: if nothing does for two, the watch is dead.
func (m *Member) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(2*m.options.RetryPeriod, func() { cancel(errSilent) })
	defer silence.Stop()
	options := metav1.ListOptions{LabelSelector: labels.Set{labelGroup: m.options.Name}.String()}
	list, err := m.client.Leases(m.options.Namespace).List(ctx, options)
	if err != nil {
		return silent(ctx, err)
	}
	m.noteList(list.Items)
	options.ResourceVersion = list.ResourceVersion
	options.TimeoutSeconds = new(int64(300 + rand.N(300)))
	watcher, err := m.watching.Leases(m.options.Namespace).Watch(ctx, options)
	if err != nil {
		return silent(ctx, err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		silence.Reset(2 * m.options.RetryPeriod)
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		m.noteEvent(event)
	}
	return silent(ctx, nil)
}

var errSilent = errors.New("the API server has said nothing of the own Lease for two retry periods")

// silent returns errSilent where that ended what failed with err.
func silent(ctx context.Context, err error) error {
	if context.Cause(ctx) == errSilent {
		return errSilent
	}
	return err
}

func (m *Member) noteList(leases []coordinationv1.Lease) {
	m.mu.Lock()
	m.mu.sightings.noteAll(leases, m.now())
	m.mu.listed = true
	m.mu.Unlock()
	m.signal()
}

func (m *Member) noteEvent(event watch.Event) {
	lease, ok := event.Object.(*coordinationv1.Lease)
	if !ok {
		return
	}
	m.mu.Lock()
	if event.Type == watch.Deleted {
		m.mu.sightings.noteDeleted(lease.Name)
	} else {
		m.mu.sightings.note(lease, m.now())
	}
	m.mu.Unlock()
	m.signal()
}
