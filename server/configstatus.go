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
	// statusInterval is the interval at which objects and bytes are counted. If only these figures have
	// changed, a status is written at most once in figuresWriteInterval. Other changes are written at
	// most once in changeWriteInterval.
	statusInterval       = 10 * time.Second
	figuresWriteInterval = time.Minute
	changeWriteInterval  = time.Second
	// maxStatusErrors is the maximum number of errors in a status.
	maxStatusErrors    = 20
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
	// IndexConfig, of its indexes. If the namespace of an IndexConfig may not list a type in all
	// namespaces, Objects counts only the objects in this namespace, and Bytes does not count the type.
	Objects    int64              `json:"objects"`
	Bytes      int64              `json:"bytes"`
	Errors     []objectError      `json:"errors,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// newStatus returns the status of an object. applyErr is the error of applying all objects. Unchanged
// conditions keep their transition time.
func (m *mergedObject) newStatus(c *typeCache, applyErr error, previous []metav1.Condition) objectStatus {
	s := objectStatus{ObservedGeneration: m.GetGeneration(), State: stateActive}
	s.Conditions = slices.Clone(previous)
	s.Errors = m.errors[:min(len(m.errors), maxStatusErrors)]
	var unsyncedTypes []string
	for _, gr := range slices.SortedFunc(maps.Keys(m.caches),
		func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) }) {
		cached, ok := c.reconciler.Type(gr)
		if !ok {
			continue // removed meanwhile
		}
		current := cached.Informer.Status() // before the counts, so that those of a synced type are complete
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
	setCondition := func(conditionType string, isTrue bool, acceptedReason, message string) {
		conditionStatus := metav1.ConditionFalse
		if isTrue {
			conditionStatus = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{Type: conditionType, Status: conditionStatus,
			Reason: acceptedReason, Message: message, ObservedGeneration: m.GetGeneration()})
	}
	acceptedMessage, readyMessage := "all of it is in effect", "all types are synced"
	acceptedReason, readyReason := "Accepted", "Synced"
	if len(unsyncedTypes) > 0 {
		s.State, readyReason, readyMessage = stateWaiting, "Waiting", strings.Join(unsyncedTypes, "\n")
	}
	if len(m.errors) > 0 {
		s.State, acceptedReason = statePartial, m.errors[0].Reason
		acceptedMessage = fmt.Sprintf("%s: %s", m.errors[0].Field, m.errors[0].Message)
		if len(m.errors) > 1 {
			acceptedMessage += fmt.Sprintf(" (and %d more)", len(m.errors)-1)
		}
		if len(m.caches) == 0 {
			s.State = stateRejected
			readyReason, readyMessage = "Rejected", "none of it is in effect"
		}
	}
	setCondition("Accepted", len(m.errors) == 0, acceptedReason, acceptedMessage)
	setCondition("Ready", s.State == stateActive || s.State == statePartial && len(unsyncedTypes) == 0,
		readyReason, readyMessage)
	return s
}

// bytesOf returns the memory of a cache or, if names are given, of these indexes. In stats, the name of an
// index that replaced another index has the suffix "~" and a number.
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
// config from the same objects, so that one replica can write for all. A write fails if the object has
// changed meanwhile.
type statusWriter struct {
	objects    *configObjects
	client     dynamic.Interface
	elector    *leaderelection.LeaderElector
	limiter    *rate.Limiter
	wakeup     signal
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
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: w.runWrites, OnStoppedLeading: func() {}},
	})
	return w, err
}

// run writes while this replica holds the Lease. It returns when ctx ends.
func (w *statusWriter) run(ctx context.Context) {
	for ctx.Err() == nil {
		w.elector.Run(ctx) // returns when the Lease is lost
	}
}

// runWrites writes changed statuses until ctx ends. The elector ends ctx when the Lease is lost.
func (w *statusWriter) runWrites(ctx context.Context) {
	for ctx.Err() == nil {
		pause := statusInterval
		if w.writeChanged(ctx) {
			pause = changeWriteInterval
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

// writeChanged writes the statuses that have changed. It returns true if some changes are delayed.
func (w *statusWriter) writeChanged(ctx context.Context) (isPending bool) {
	objects, applyErr := w.objects.merged()
	lastWrites := map[types.UID]time.Time{}
	for _, object := range objects {
		uid := object.GetUID()
		lastWrite := w.lastWrites[uid]
		lastWrites[uid] = lastWrite
		changed, onlyFigures, err := object.withStatus(w.objects.cache, applyErr)
		switch since := time.Since(lastWrite); {
		case err != nil:
			klog.ErrorS(err, "Cannot compute a status", "object", object.String())
		case changed == nil || onlyFigures && since < figuresWriteInterval:
		case since < changeWriteInterval || !w.limiter.Allow():
			isPending = true
		default:
			lastWrites[uid] = time.Now()
			isPending = w.update(ctx, object, changed) != nil || isPending
		}
	}
	w.lastWrites = lastWrites
	return isPending
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

// withStatus returns a copy of an object with its new status, or nil if the status is unchanged. onlyFigures
// is true if only Objects and Bytes have changed.
func (m *mergedObject) withStatus(c *typeCache, applyErr error) (changed *unstructured.Unstructured,
	onlyFigures bool,
	err error) {
	var oldStatus objectStatus
	oldFields, _, _ := unstructured.NestedMap(m.Object, "status")
	// A status that is not ours is replaced.
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(oldFields, &oldStatus)
	newStatus := m.newStatus(c, applyErr, oldStatus.Conditions)
	if reflect.DeepEqual(oldStatus, newStatus) {
		return nil, false, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&newStatus)
	if err != nil {
		return nil, false, err
	}
	changed = m.DeepCopy()
	changed.Object["status"] = content
	oldStatus.Objects, oldStatus.Bytes = newStatus.Objects, newStatus.Bytes
	return changed, reflect.DeepEqual(oldStatus, newStatus), nil
}
