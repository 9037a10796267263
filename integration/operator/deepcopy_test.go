package operator_test

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
)

// clone returns a deep copy. Operators use methods that controller-gen generates.
func clone[T any](object *T) *T {
	text, err := json.Marshal(object)
	out := new(T)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		panic(err) // the types have only fields with a JSON form
	}
	return out
}

// DeepCopy copies a Workload.
func (w *Workload) DeepCopy() *Workload { return clone(w) }

func (w *Workload) DeepCopyObject() runtime.Object { return clone(w) }

func (l *WorkloadList) DeepCopyObject() runtime.Object { return clone(l) }

func (e *Environment) DeepCopyObject() runtime.Object { return clone(e) }

func (l *EnvironmentList) DeepCopyObject() runtime.Object { return clone(l) }

func (r *Release) DeepCopyObject() runtime.Object { return clone(r) }

func (l *ReleaseList) DeepCopyObject() runtime.Object { return clone(l) }
