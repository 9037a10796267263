package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/indexers/references"
)

// treeState is how an object is doing.
type treeState struct {
	Condition   *treeCondition `json:"condition,omitempty"`
	Phase       string         `json:"phase,omitempty"`
	Terminating bool           `json:"terminating,omitempty"`
	Created     *time.Time     `json:"created,omitempty"`
}

// treeCondition is the condition that tells most of an object.
type treeCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// tellingConditions are those that say whether all is well, the best first.
var tellingConditions = []string{"Ready", "Available", "Established", "Complete", "Succeeded", "Programmed", "Accepted"}

// stateOf reads the state of an object.
func stateOf(object *unstructured.Unstructured) *treeState {
	s := &treeState{Terminating: object.GetDeletionTimestamp() != nil}
	if created := object.GetCreationTimestamp(); !created.IsZero() {
		s.Created = &created.Time
	}
	s.Phase, _, _ = unstructured.NestedString(object.Object, "status", "phase")
	found, _, _ := unstructured.NestedFieldNoCopy(object.Object, "status", "conditions")
	list, _ := found.([]any)
	best := len(tellingConditions) + 1
	for _, item := range list {
		fields, _ := item.(map[string]any)
		text := func(name string) string {
			value, _ := fields[name].(string)
			return value
		}
		rank := len(tellingConditions)
		for i, name := range tellingConditions {
			if text("type") == name {
				rank = i
			}
		}
		if rank < best && text("type") != "" {
			best = rank
			s.Condition = &treeCondition{text("type"), text("status"), text("reason"), text("message")}
		}
	}
	return s
}

// readStates reads the objects of nodes of which only the metadata is there, for their states. What has gone meanwhile has
// none any more. The error says of which types states are lacking.
func (w *wood) readStates(ctx context.Context, bodiless map[references.Object][]*treeNode) error {
	nodes := map[schema.GroupResource]map[string][]*treeNode{}
	for o, of := range bodiless {
		if len(of) == 0 {
			continue
		}
		name := schema.GroupResource{Group: o.Group, Resource: o.Resource}
		if nodes[name] == nil {
			nodes[name] = map[string][]*treeNode{}
		}
		nodes[name][o.Key()] = append(nodes[name][o.Key()], of...)
	}
	var errs []error
	for _, cached := range w.caches.Synced {
		of := nodes[cached.Resource.GVR.GroupResource()]
		if len(of) == 0 {
			continue
		}
		states := map[string]*treeState{}
		err := w.client.Read(ctx, cached.Resource, w.namespace, slices.Sorted(maps.Keys(of)), func(key string, object *unstructured.Unstructured) {
			states[key] = stateOf(object)
		})
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: states are lacking: %w", cached.Resource.GVR.GroupResource(), err))
		}
		for key, all := range of {
			if states[key] == nil && err != nil {
				continue
			}
			for _, n := range all {
				n.treeState = states[key]
			}
		}
	}
	return errors.Join(errs...)
}

// cells are the state and its reason, for the table.
func (s *treeState) cells() (state, reason string) {
	switch {
	case s.Terminating:
		state = "Terminating"
	case s.Condition != nil:
		state = s.Condition.Type + "=" + s.Condition.Status
	default:
		state = s.Phase
	}
	if s.Condition != nil {
		reason = s.Condition.Reason
	}
	return state, reason
}
