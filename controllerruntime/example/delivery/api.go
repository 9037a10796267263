package delivery

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of the demo platform.
var GroupVersion = schema.GroupVersion{Group: "demo.crdcache.dev", Version: "v1"}

// AddToScheme adds the types of the demo platform to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Workload{}, &WorkloadList{}, &Environment{}, &EnvironmentList{}, &Release{}, &ReleaseList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// The types have the fields that the operator uses, and lack the others. That is why it never updates an
// object as a whole, which would remove them: it applies or patches what is its own.

// Workload is a program that the platform keeps running in one environment.
type Workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   WorkloadSpec   `json:"spec"`
	Status WorkloadStatus `json:"status,omitempty"`
}

// WorkloadSpec is what is to run, and where.
type WorkloadSpec struct {
	Environment string `json:"environment"`
	Image       string `json:"image"`
	Replicas    int32  `json:"replicas,omitempty"`
	Paused      bool   `json:"paused,omitempty"`
}

// WorkloadStatus is what the operator last saw.
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

// Environment is a place that workloads are delivered to.
type Environment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec EnvironmentSpec `json:"spec"`
}

// EnvironmentSpec is what the environment is meant to be.
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

// Release records that one version of a workload was, or is being, rolled out.
type Release struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ReleaseSpec   `json:"spec"`
	Status ReleaseStatus `json:"status,omitempty"`
}

// ReleaseSpec is what is rolled out.
type ReleaseSpec struct {
	Workload string `json:"workload"`
	Version  string `json:"version"`
}

// ReleaseStatus is how it goes.
type ReleaseStatus struct {
	Phase string `json:"phase,omitempty"`
}

// ReleaseList is a list of Releases.
type ReleaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Release `json:"items"`
}
