package web

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
)

// builtIn has the columns of types without a CRD. They show fields of objects: values that a kube-apiserver
// computes for its Tables, such as the Ready and Status of a Pod, could not be sorted by. Columns are named
// after their fields.
var builtIn = map[schema.GroupResource][]crd.Column{
	{Resource: "events"}: {textColumn("Type", ".type"),
		textColumn("Reason", ".reason"), textColumn("Object", ".involvedObject.name"), textColumn("Message", ".message")},
	{Resource: "namespaces"}: {textColumn("Phase", ".status.phase")},
	{Resource: "nodes"}: {textColumn("Ready",
		`.status.conditions[?(@.type=="Ready")].status`), textColumn("Version", ".status.nodeInfo.kubeletVersion")},
	{Resource: "persistentvolumeclaims"}: {textColumn("Phase", ".status.phase"),
		textColumn("Volume", ".spec.volumeName"), textColumn("Capacity", ".status.capacity.storage"), textColumn("StorageClass",
			".spec.storageClassName")},
	{Resource: "persistentvolumes"}: {textColumn("Phase", ".status.phase"),
		textColumn("Claim", ".spec.claimRef.name"), textColumn("Capacity", ".spec.capacity.storage"), textColumn("StorageClass",
			".spec.storageClassName")},
	{Resource: "pods"}: {textColumn("Phase", ".status.phase"),
		textColumn("Node", ".spec.nodeName"), textColumn("IP", ".status.podIP")},
	{Resource: "services"}: {textColumn("Type", ".spec.type"), textColumn("Cluster-IP", ".spec.clusterIP")},
	{Group: "apps", Resource: "daemonsets"}: {count("Desired",
		".status.desiredNumberScheduled"), count("Current", ".status.currentNumberScheduled"),
		count("Ready", ".status.numberReady"), count("Available", ".status.numberAvailable")},
	{Group: "apps", Resource: "deployments"}: {count("Desired", ".spec.replicas"),
		count("Ready", ".status.readyReplicas"), count("Up-to-date",
			".status.updatedReplicas"), count("Available", ".status.availableReplicas")},
	{Group: "apps", Resource: "replicasets"}: {count("Desired", ".spec.replicas"),
		count("Current", ".status.replicas"), count("Ready", ".status.readyReplicas")},
	{Group: "apps", Resource: "statefulsets"}: {count("Desired", ".spec.replicas"),
		count("Ready", ".status.readyReplicas")},
	{Group: "autoscaling", Resource: "horizontalpodautoscalers"}: {textColumn("Target",
		".spec.scaleTargetRef.name"), count("Min", ".spec.minReplicas"), count("Max", ".spec.maxReplicas"),
		count("Replicas", ".status.currentReplicas")},
	{Group: "batch", Resource: "cronjobs"}: {textColumn("Schedule", ".spec.schedule"),
		{Name: "Suspend", Type: "boolean", JSONPath: ".spec.suspend"}, {Name: "Last schedule", Type: "date",
			JSONPath: ".status.lastScheduleTime"}},
	{Group: "batch", Resource: "jobs"}: {count("Completions", ".spec.completions"),
		count("Active", ".status.active"), count("Succeeded", ".status.succeeded"), count("Failed",
			".status.failed")},
	{Group: "networking.k8s.io", Resource: "ingresses"}: {textColumn("Class", ".spec.ingressClassName")},
}

func textColumn(name, path string) crd.Column {
	return crd.Column{Name: name, Type: "string", JSONPath: path}
}

func count(name, path string) crd.Column {
	return crd.Column{Name: name, Type: "integer", JSONPath: path}
}
