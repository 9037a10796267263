package server

import (
	"context"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

const (
	// statusLease is the name of the Lease of the replica that writes the status of config objects.
	statusLease = "crdcached-status"
	// statusPeriod is the interval at which the figures are read. figuresPeriod is the minimum interval of
	// writes of one object in which only figures have changed; changePeriod is that of other writes.
	statusPeriod  = 10 * time.Second
	figuresPeriod = time.Minute
	changePeriod  = time.Second
	// maxStatusErrors is the maximum number of errors in a status.
	maxStatusErrors = 20
	// statusWriteTimeout bounds a write.
	statusWriteTimeout = 10 * time.Second
)

// States of a config object.
const (
	stateActive   = "Active"   // all of it is in effect, and the types are synced
	stateWaiting  = "Waiting"  // all of it is in effect, but some types are not synced or do not exist
	statePartial  = "Partial"  // some of it is not in effect, because of errors
	stateRejected = "Rejected" // nothing is in effect, because of errors
)

// objectStatus is the status of a config object.
type objectStatus struct {
	ObservedGeneration int64  `json:"observedGeneration"`
	State              string `json:"state"`
	// Objects is the number of objects of the types. Bytes is the memory of their caches or, for an
	// IndexConfig, of its indexes. For types that the namespace of an IndexConfig may not list in all
	// namespaces, Objects counts those of its namespace, and Bytes is zero.
	Objects    int64              `json:"objects"`
	Bytes      int64              `json:"bytes"`
	Errors     []objectError      `json:"errors,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// status returns the status of an object. applyErr is the error of applying all objects. The conditions are
// changed from those before.
func (m *mergedObject) status(c *typeCache, applyErr error, before []metav1.Condition) objectStatus {
	s := objectStatus{ObservedGeneration: m.GetGeneration(), State: stateActive}
	s.Conditions = slices.Clone(before)
	s.Errors = m.errors[:min(len(m.errors), maxStatusErrors)]
	var unsyncedTypes []string
	for _, gr := range slices.SortedFunc(maps.Keys(m.caches),
		func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }) {
		cached, ok := c.reconciler.Type(gr)
		if !ok {
			continue // removed meanwhile
		}
		current := cached.Informer.Status() // before the figures: a synced type has its objects
		stats := cached.Informer.Stats()
		if m.partlyVisible[gr] {
			if byNamespace, ok := cached.Informer.Snapshot().Index(toolscache.NamespaceIndex); ok {
				s.Objects += int64(byNamespace.Count(m.GetNamespace()))
			}
		} else {
			s.Objects += int64(stats.Objects)
			s.Bytes += bytesOf(stats, m.caches[gr])
		}
		if current.State != status.Synced {
			unsyncedTypes = append(unsyncedTypes, fmt.Sprintf("%s: %s", gr, current.Describe()))
		}
		if cached.Replacement != nil {
			unsyncedTypes = append(unsyncedTypes, fmt.Sprintf("%s: changed settings wait for the first list: %s", gr,
				cached.Replacement.Status().Describe()))
		}
	}
	problems := c.reconciler.Problems()
	for _, name := range m.names {
		if problem := problems[name]; problem != nil {
			unsyncedTypes = append(unsyncedTypes, problem.Error())
		}
	}
	if applyErr != nil {
		unsyncedTypes = append(unsyncedTypes, applyErr.Error())
	}
	setCondition := func(condition string, holds bool, reason, message string) {
		value := metav1.ConditionFalse
		if holds {
			value = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: condition, Status: value,
			Reason: reason, Message: message, ObservedGeneration: m.GetGeneration()})
	}
	accepted, ready := "all of it is in effect", "all types are synced"
	reason, state := "Accepted", "Synced"
	if len(unsyncedTypes) > 0 {
		s.State, state, ready = stateWaiting, "Waiting", strings.Join(unsyncedTypes, "\n")
	}
	if len(m.errors) > 0 {
		s.State, reason = statePartial, m.errors[0].Reason
		accepted = fmt.Sprintf("%s: %s", m.errors[0].Field, m.errors[0].Message)
		if len(m.errors) > 1 {
			accepted += fmt.Sprintf(" (and %d more)", len(m.errors)-1)
		}
		if len(m.caches) == 0 {
			s.State = stateRejected
			state, ready = "Rejected", "none of it is in effect"
		}
	}
	setCondition("Accepted", len(m.errors) == 0, reason, accepted)
	setCondition("Ready", s.State == stateActive || s.State == statePartial && len(unsyncedTypes) == 0, state, ready)
	return s
}

// bytesOf returns the memory of a cache or, if names are given, of these indexes. In the cache, an index that
// has replaced another one has the suffix "~" and a number.
func bytesOf(stats status.Stats, names []string) (bytes int64) {
	if len(names) == 0 {
		return stats.Bytes()
	}
	for _, index := range stats.Indexes {
		if name, _, _ := strings.Cut(index.Name, "~"); slices.Contains(names, name) {
			bytes += index.Bytes
		}
	}
	return bytes
}

// statusWriter writes the status of config objects while it holds the Lease. All replicas compute the same
// config from the same objects, so that one of them can write for all. A write fails if the object has
// changed.
type statusWriter struct {
	objects *configObjects
	client  dynamic.Interface
	elector *leaderelection.LeaderElector
	limiter *rate.Limiter
	wakeup  signal
	// lastWrites are the times of the last writes.
	lastWrites map[types.UID]time.Time
}

func newStatusWriter(objects *configObjects, config *rest.Config, namespace string) (*statusWriter, error) {
	w := &statusWriter{objects: objects, limiter: rate.NewLimiter(5, 20), wakeup: newSignal(),
		lastWrites: map[types.UID]time.Time{}}
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeJSON
	leases, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if w.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // the rest of the identity is unique
	w.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: statusLease},
			Client:     leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())},
		},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		ReleaseOnCancel: true, Name: statusLease,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: w.write, OnStoppedLeading: func() {}},
	})
	return w, err
}

// run writes whenever this replica holds the Lease, until ctx ends.
func (w *statusWriter) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.elector.Run(ctx) // returns when the Lease is lost
	}
}

// write writes changed statuses until ctx ends, which is when the Lease is lost.
func (w *statusWriter) write(ctx context.Context) {
	for ctx.Err() == nil {
		pause := statusPeriod
		if w.writeChanged(ctx) {
			pause = changePeriod
		}
		select {
		case <-w.wakeup:
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

func (o *configObject) gvr() schema.GroupVersionResource {
	if o.GetKind() == cachedTypesKind {
		return cachedTypesGVR
	}
	return indexConfigGVR
}

// writeChanged writes the statuses that have changed. It returns true if some must be written later.
func (w *statusWriter) writeChanged(ctx context.Context) (later bool) {
	objects, applied := w.objects.merged()
	lastWrites := map[types.UID]time.Time{}
	for _, object := range objects {
		uid := object.GetUID()
		last := w.lastWrites[uid]
		lastWrites[uid] = last
		changed, figures, err := object.withStatus(w.objects.cache, applied)
		switch since := time.Since(last); {
		case err != nil:
			klog.ErrorS(err, "Cannot compute a status", "object", object.String())
		case changed == nil || figures && since < figuresPeriod:
		case since < changePeriod || !w.limiter.Allow():
			later = true
		default:
			lastWrites[uid] = time.Now()
			later = w.update(ctx, object, changed) != nil || later
		}
	}
	w.lastWrites = lastWrites
	return later
}

func (w *statusWriter) update(ctx context.Context, m *mergedObject, object *unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, statusWriteTimeout)
	defer cancel()
	_, err := w.client.Resource(m.gvr()).Namespace(m.GetNamespace()).UpdateStatus(ctx, object,
		metav1.UpdateOptions{FieldManager: "crdcached"})
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err): // an event with the change follows
		return nil
	case err != nil && ctx.Err() == nil:
		klog.InfoS("Cannot write a status", "object", m.String(), "reason", err.Error())
	}
	return err
}

// withStatus returns a copy of an object with its new status, or nil if it is unchanged. onlyFigures is true
// if only figures have changed.
func (m *mergedObject) withStatus(c *typeCache, applyErr error) (changed *unstructured.Unstructured,
	onlyFigures bool,
	err error) {
	var before objectStatus
	old, _, _ := unstructured.NestedMap(m.Object, "status")
	// A status that is not ours is replaced.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(old, &before)
	after := m.status(c, applyErr, before.Conditions)
	if reflect.DeepEqual(before, after) {
		return nil, false, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&after)
	if err != nil {
		return nil, false, err
	}
	changed = m.DeepCopy()
	changed.Object["status"] = content
	before.Objects, before.Bytes = after.Objects, after.Bytes
	return changed, reflect.DeepEqual(before, after), nil
}
