package controllers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/naming"
)

// Status is the status of a controller.
type Status struct {
	Name string
	// Ready is a condition for the status of an object, without times: true while all watches work. Other
	// reasons are Waiting (for a type, permission, valid options, or this replica to lead), Syncing (a first
	// list is under way) and Stopping. Watches do not wait for each other.
	Ready       metav1.Condition
	QueueLength int // without delayed requests
	// Reconciles are the numbers of completed reconciles by result: success, error, requeue, requeue_after.
	Reconciles       map[string]uint64
	ActiveReconciles int
	LastError        error // of the last reconcile
}

// Status returns the status of a controller. ok is false if there is none of this name.
func (c *Controllers) Status(name string) (s Status, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.controllers[name]
	if ok {
		s = k.statusLocked()
	}
	return s, ok
}

// All returns the status of all controllers, ordered by name.
func (c *Controllers) All() []Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return naming.Map(slices.Sorted(maps.Keys(c.controllers)),
		func(name string) Status { return c.controllers[name].statusLocked() })
}

func (k *running) statusLocked() Status {
	s := Status{Name: k.name, Reconciles: maps.Clone(k.reconciles), ActiveReconciles: len(k.reconciling),
		LastError: k.lastError, QueueLength: k.queue.Len()}
	s.Ready = metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Running"}
	for _, w := range k.watches {
		reason, message := w.problem()
		if s.Ready.Message += message; s.Ready.Reason == "Running" || reason == "Waiting" {
			s.Ready.Reason = reason
		}
	}
	switch {
	case k.ctx.Err() != nil:
		s.Ready.Reason, s.Ready.Message = "Stopping", ""
	case k.controllers.ctx == nil:
		s.Ready.Reason, s.Ready.Message = "Waiting", "this replica is not the leader"
	case k.applyError != nil:
		s.Ready.Reason, s.Ready.Message = "Waiting", s.Ready.Message+k.applyError.Error()
	case s.Ready.Reason == "Running":
		s.Ready.Status = metav1.ConditionTrue
	}
	return s
}

// problem returns the reason of Status.Ready, and a message about a watch that does not work yet.
func (w *watch) problem() (reason, message string) {
	followed := w.subscription.Types()
	invalid := ptr.Deref(w.Options, dynamicinformer.ResourceOptions{}).Validate()
	switch err := cmp.Or(invalid, ptr.Deref(w.err.Load(), nil)); {
	case invalid == nil && len(followed) > 0 && followed[0].Status.State == status.Synced:
		return "Running", ""
	case invalid == nil && len(followed) > 0: // with invalid options, the former watch continues
		reason, current := "Waiting", followed[0].Status
		if (current.State == status.Syncing || current.State == status.Resuming) && !current.Settled() {
			reason = "Syncing"
		}
		return reason, current.String() + "; "
	case err != nil:
		return "Waiting", fmt.Sprintf("%s: %v; ", w.GroupKind, err)
	}
	return "Waiting", w.GroupKind.String() + " is not installed; "
}
