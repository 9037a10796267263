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
	"k8s.io/klog/v2"
)

// bePresent renews the Lease by which others know of the replica until ctx ends, and removes it then. present is closed when
// it is there for the first time.
func (m *Member) bePresent(ctx context.Context, present chan<- struct{}) {
	name := m.options.Name + "-member-" + m.id
	once := sync.OnceFunc(func() { close(present) })
	for ctx.Err() == nil {
		lock := m.leaseLock(name, nil)
		m.elect(ctx, &lock, once)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.options.RetryPeriod)
	defer cancel()
	m.remove(ctx, name, metav1.DeleteOptions{})
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
		m.remove(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &known.resourceVersion}})
	}
}

// observe follows the Leases of the group until ctx ends. It begins when the own is there: of two replicas that begin at the same
// time, at least one sees the other then, before it takes anything.
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

// follow lists and watches once, until the watch ends. The own Lease is renewed each retry period, and that shows in the watch:
// if nothing does for two, the watch is dead.
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
