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

// heartbeat renews the member Lease until ctx ends, and then removes it. It closes started after the first
// write.
func (m *Member) heartbeat(ctx context.Context, started chan<- struct{}) {
	lease := m.newLease(m.options.Name + "-member-" + m.idSuffix)
	once := sync.OnceFunc(func() { close(started) })
	for ctx.Err() == nil {
		if err := lease.renew(ctx); err == nil {
			once()
		} else if ctx.Err() == nil {
			lease.held = nil // if another process has changed it
			klog.FromContext(ctx).Error(err, "Cannot renew the member Lease; this replica takes no shards until it succeeds", "lease", lease.name)
		}
		pause(ctx, m.options.retryPeriod())
	}
	m.deleteLease(context.WithoutCancel(ctx), lease.name, metav1.DeleteOptions{})
}

func (m *Member) deleteLease(ctx context.Context, name string, options metav1.DeleteOptions) {
	ctx, cancel := context.WithTimeout(ctx, m.options.RetryPeriod)
	defer cancel()
	err := m.client.Leases(m.options.Namespace).Delete(ctx, name, options)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		klog.FromContext(ctx).Info("Cannot remove a member Lease", "lease", name, "err", err)
	}
}

// sweep removes the member Leases of replicas that were killed, until ctx ends.
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
		m.mu.observed.forget()
		expired := m.mu.observed.expiredMembers(m.now())
		m.mu.Unlock()
		for name, version := range expired { // only if it has not changed since it was observed
			m.deleteLease(ctx, name,
				metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &version}})
		}
	}
}

// observe watches the Leases of the group until ctx ends. It starts after the first heartbeat: of two
// replicas that start at the same time, at least one then observes the other before it takes a shard.
func (m *Member) observe(ctx context.Context, started <-chan struct{}) {
	select {
	case <-started:
	case <-ctx.Done():
		return
	}
	for ctx.Err() == nil {
		if err := m.listAndWatch(ctx); err != nil {
			m.mu.Lock()
			m.mu.isListed = false
			m.mu.Unlock()
			if ctx.Err() != nil {
				return
			}
			klog.FromContext(ctx).Info("Cannot watch the Leases", "group", m.options.Name, "err", err)
			pause(ctx, m.options.RetryPeriod/4+rand.N(m.options.RetryPeriod/4+1))
		}
	}
}

func pause(ctx context.Context, period time.Duration) {
	timer := time.NewTimer(period)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// listAndWatch lists the Leases and watches them once. The member Lease of this replica is renewed in each
// retry period. If the watch delivers no event for two periods, it is dead.
func (m *Member) listAndWatch(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer func() {
		if context.Cause(ctx) == errSilent {
			err = errSilent
		}
	}()
	silence := time.AfterFunc(2*m.options.RetryPeriod, func() { cancel(errSilent) })
	defer silence.Stop()
	options := metav1.ListOptions{LabelSelector: labels.Set{labelGroup: m.options.Name}.String()}
	list, err := m.client.Leases(m.options.Namespace).List(ctx, options)
	if err != nil {
		return err
	}
	m.recordList(list.Items)
	options.ResourceVersion = list.ResourceVersion
	options.TimeoutSeconds = new(int64(300 + rand.N(300)))
	watcher, err := m.watchClient.Leases(m.options.Namespace).Watch(ctx, options)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		silence.Reset(2 * m.options.RetryPeriod)
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		m.recordEvent(event)
	}
	return nil
}

var errSilent = errors.New("no event of the own Lease for two retry periods")

func (m *Member) recordList(leases []coordinationv1.Lease) {
	m.mu.Lock()
	m.mu.observed.recordAll(leases, m.now())
	m.mu.isListed = true
	m.mu.Unlock()
	m.wake()
}

func (m *Member) recordEvent(event watch.Event) {
	lease, ok := event.Object.(*coordinationv1.Lease)
	if !ok {
		return
	}
	m.mu.Lock()
	if event.Type == watch.Deleted {
		m.mu.observed.recordDeleted(lease.Name)
	} else {
		m.mu.observed.record(lease, m.now())
	}
	m.mu.Unlock()
	m.wake()
}
