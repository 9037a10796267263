package web

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Tones of a status.
const (
	toneGood = "good"
	toneBad  = "bad"
	toneOpen = "open" // neutral or unknown
)

// meaning says which status of a condition is good, and which one is bad. Other statuses are neutral.
type meaning struct{ good, bad string }

var (
	goodWhenTrue = meaning{good: "True", bad: "False"}
	badWhenTrue  = meaning{good: "False", bad: "True"}
	onlyGood     = meaning{good: "True"}
	onlyBad      = meaning{bad: "True"}
)

// builtInConditions are the conditions of built-in types that have a meaning. All others are neutral.
var builtInConditions = map[schema.GroupResource]map[string]meaning{
	{Resource: "namespaces"}:             meanings("", "NamespaceDeletionDiscoveryFailure NamespaceDeletionContentFailure NamespaceDeletionGroupVersionParsingFailure"),
	{Resource: "nodes"}:                  meanings("Ready", "MemoryPressure DiskPressure PIDPressure NetworkUnavailable KernelDeadlock ReadonlyFilesystem FrequentKubeletRestart FrequentContainerdRestart FrequentDockerRestart"),
	{Resource: "persistentvolumeclaims"}: meanings("", "ControllerResizeError NodeResizeError ModifyVolumeError"),
	{Resource: "pods"}:                   meanings("PodReadyToStartContainers Initialized PodScheduled ContainersReady Ready", "DisruptionTarget"),
	{Resource: "replicationcontrollers"}: meanings("", "ReplicaFailure"),
	{Resource: "services"}:               meanings("", "LoadBalancerPortsError"),
	{Group: "admissionregistration.k8s.io", Resource: "validatingadmissionpolicies"}: {},
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}: meanings(
		"Established NamesAccepted KubernetesAPIApprovalPolicyConformant", "NonStructuralSchema"),
	{Group: "apiregistration.k8s.io", Resource: "apiservices"}: meanings("Available", ""),
	{Group: "apps", Resource: "daemonsets"}:                    {},
	{Group: "apps", Resource: "deployments"}:                   meanings("Available Progressing", "ReplicaFailure"),
	{Group: "apps", Resource: "replicasets"}:                   meanings("", "ReplicaFailure"),
	{Group: "apps", Resource: "statefulsets"}:                  {},
	{Group: "autoscaling", Resource: "horizontalpodautoscalers"}: meanings(
		"AbleToScale ScalingActive", ""),
	{Group: "batch", Resource: "jobs"}: {"Complete": onlyGood, "SuccessCriteriaMet": onlyGood,
		"Failed": onlyBad, "FailureTarget": onlyBad},
	{Group: "certificates.k8s.io", Resource: "certificatesigningrequests"}: {"Approved": onlyGood,
		"Denied": onlyBad, "Failed": onlyBad},
	{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}: {"Issued": onlyGood,
		"Denied": onlyBad, "Failed": onlyBad, "SuggestedKeyType": onlyBad},
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "flowschemas"}:                 meanings("", "Dangling"),
	{Group: "flowcontrol.apiserver.k8s.io", Resource: "prioritylevelconfigurations"}: {},
	{Group: "networking.k8s.io", Resource: "servicecidrs"}:                           meanings("Ready", ""),
	// False means that no Pod can be evicted now, which is common.
	{Group: "policy", Resource: "poddisruptionbudgets"}: {"DisruptionAllowed": onlyGood},
	{Group: "storagemigration.k8s.io", Resource: "storageversionmigrations"}: {"Succeeded": onlyGood,
		"Failed": onlyBad},
}

// knownConditions are common names of conditions of custom resources. Names that end in one of
// knownEndings have its meaning. All others are neutral.
var (
	knownConditions = meanings(
		"Accepted Approved Available Established Healthy Initialized Installed Programmed Ready Reconciled "+
			"ResolvedRefs Scheduled Succeeded Synced Valid",
		"Conflicted Degraded Denied Error Failed InvalidRequest NotReady Stalled Unavailable Unhealthy")
	knownEndings = []string{"NotReady", "Unready", "Unavailable", "Unhealthy", "Degraded", "Error", "Failed",
		"Failure", "Pressure", "Ready", "Available", "Healthy", "Succeeded"}
	endingMeanings = meanings("Ready Available Healthy Succeeded",
		"NotReady Unready Unavailable Unhealthy Degraded Error Failed Failure Pressure")
)

// meanings returns the meanings of conditions that are good, or bad, when true.
func meanings(good, bad string) map[string]meaning {
	byName := map[string]meaning{}
	for name := range strings.FieldsSeq(good) {
		byName[name] = goodWhenTrue
	}
	for name := range strings.FieldsSeq(bad) {
		byName[name] = badWhenTrue
	}
	return byName
}

// meaningOf returns the meaning of a condition of a type. The zero value is neutral.
func meaningOf(gr schema.GroupResource, name string) meaning {
	if builtIn, ok := builtInConditions[gr]; ok {
		return builtIn[name]
	}
	if known, ok := knownConditions[name]; ok {
		return known
	}
	i := slices.IndexFunc(knownEndings, func(ending string) bool { return strings.HasSuffix(name, ending) })
	if i < 0 {
		return meaning{}
	}
	return endingMeanings[knownEndings[i]]
}

// reasonOfEnd is the reason of a Pod that is not ready because it has completed.
const reasonOfEnd = "PodCompleted"

// toneOf returns the meaning of a status.
func toneOf(gr schema.GroupResource, name, status, reason string) string {
	switch meaning := meaningOf(gr, name); {
	case status == "" || reason == reasonOfEnd:
		return toneOpen
	case status == meaning.good:
		return toneGood
	case status == meaning.bad:
		return toneBad
	}
	return toneOpen
}
