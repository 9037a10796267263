package operator_test

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// date sets the transition times of the conditions. A condition that did not change keeps its time.
func (s *WorkloadStatus) date(present WorkloadStatus) {
	for i := range s.Conditions {
		c := &s.Conditions[i]
		c.LastTransitionTime = metav1.Now()
		if was := meta.FindStatusCondition(present.Conditions, c.Type); was != nil && was.Status == c.Status {
			c.LastTransitionTime = was.LastTransitionTime
		}
	}
}

// is reports whether the present status has the same content. It may have further conditions.
func (s *WorkloadStatus) is(present WorkloadStatus) bool {
	if s.ObservedGeneration != present.ObservedGeneration || s.Phase != present.Phase {
		return false
	}
	for _, c := range s.Conditions {
		if was := meta.FindStatusCondition(present.Conditions, c.Type); was == nil ||
			!equality.Semantic.DeepEqual(*was, c) {
			return false
		}
	}
	return true
}
