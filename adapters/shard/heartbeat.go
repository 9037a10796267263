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

// heartbeat renews the member Lease until ctx ends, and then removes it. It closes started after the first
// write.
func (m *Member) heartbeat(ctx context.Context, started chan<- struct{}) {
	name := m.options.Name + "-member-" + m.idSuffix
	once := sync.OnceFunc(func() { close(started) })
	for ctx.Err() == nil {
		m.elect(ctx, &memberLease{LeaseLock: m.leaseLock(name, nil), logger: klog.FromContext(ctx)}, once)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.options.RetryPeriod)
	defer cancel()
	m.deleteLease(ctx, name, metav1.DeleteOptions{})
}

// memberLease is the Lock of an elector for a member Lease. It logs failures, because a replica without a
// member Lease takes no shards.
type memberLease struct {
	resourcelock.LeaseLock
	logger klog.Logger
}

func (m *memberLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return m.report(ctx, m.LeaseLock.Create(ctx, record))
}

func (m *memberLease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return m.report(ctx, m.LeaseLock.Update(ctx, record))
}

func (m *memberLease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := m.LeaseLock.Get(ctx)
	if !apierrors.IsNotFound(err) {
		_ = m.report(ctx, err)
	}
	return record, raw, err
}

// report logs an error, unless ctx has ended, and returns it.
func (m *memberLease) report(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil {
		m.logger.Error(err, "Cannot renew the member Lease; this replica takes no shards until it succeeds", "lease", m.Describe())
	}
	return err
}

func (m *Member) deleteLease(ctx context.Context, name string, options metav1.DeleteOptions) {
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
		names := m.mu.observed.expiredMembers(m.now())
		m.mu.Unlock()
		for _, name := range names {
			m.removeAbandoned(ctx, name)
		}
	}
}

// removeAbandoned deletes a member Lease if it has not changed since it was observed.
func (m *Member) removeAbandoned(ctx context.Context, name string) {
	m.mu.Lock()
	known := m.mu.observed.leases[name]
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, m.options.RetryPeriod)
	defer cancel()
	if known != nil && known.resourceVersion != "" {
		m.deleteLease(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
			ResourceVersion: &known.resourceVersion}})
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
