package operator_test

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API version of the demo platform.
var GroupVersion = schema.GroupVersion{Group: "demo.crdcache.dev", Version: "v1"}

// AddToScheme adds the types of the demo platform to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Workload{}, &WorkloadList{}, &Environment{}, &EnvironmentList{}, &Release{}, &ReleaseList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// The types have only the fields that the operator uses. An update would remove the other fields, so the
// operator only applies or patches its own.

// Workload is a program that runs in one environment.
type Workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WorkloadSpec   `json:"spec"`
	Status WorkloadStatus `json:"status,omitempty"`
}

// WorkloadSpec is the desired state of a Workload.
type WorkloadSpec struct {
	Environment string `json:"environment"`
	Image       string `json:"image"`
	Replicas    int32  `json:"replicas,omitempty"`
	Paused      bool   `json:"paused,omitempty"`
}

// WorkloadStatus is the observed state of a Workload.
type WorkloadStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Phase              string             `json:"phase,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// WorkloadList is a list of Workloads.
type WorkloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Workload `json:"items"`
}

// Environment is a deployment target of workloads.
type Environment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec EnvironmentSpec `json:"spec"`
}

// EnvironmentSpec is the desired state of an Environment.
type EnvironmentSpec struct {
	Stage  string `json:"stage"`
	Region string `json:"region"`
}

// EnvironmentList is a list of Environments.
type EnvironmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Environment `json:"items"`
}

// Release records the rollout of one version of a workload.
type Release struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ReleaseSpec   `json:"spec"`
	Status ReleaseStatus `json:"status,omitempty"`
}

// ReleaseSpec is the version to roll out.
type ReleaseSpec struct {
	Workload string `json:"workload"`
	Version  string `json:"version"`
}

// ReleaseStatus is the progress of a rollout.
type ReleaseStatus struct {
	Phase string `json:"phase,omitempty"`
}

// ReleaseList is a list of Releases.
type ReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Release `json:"items"`
}

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
