package web

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
)

// builtInColumns has the columns of types without a CRD. Each column shows a field of the object and has its
// name. The page could not sort by values that a kube-apiserver computes for a Table, such as READY of a Pod.
var builtInColumns = map[schema.GroupResource][]crd.Column{
	{Resource: "events"}:                                         columns("Type:string:.type, Reason:string:.reason, Object:string:.involvedObject.name, Message:string:.message"),
	{Resource: "namespaces"}:                                     columns("Phase:string:.status.phase"),
	{Resource: "nodes"}:                                          columns(`Ready:string:.status.conditions[?(@.type=="Ready")].status, Version:string:.status.nodeInfo.kubeletVersion`),
	{Resource: "persistentvolumeclaims"}:                         columns("Phase:string:.status.phase, Volume:string:.spec.volumeName, Capacity:string:.status.capacity.storage, StorageClass:string:.spec.storageClassName"),
	{Resource: "persistentvolumes"}:                              columns("Phase:string:.status.phase, Claim:string:.spec.claimRef.name, Capacity:string:.spec.capacity.storage, StorageClass:string:.spec.storageClassName"),
	{Resource: "pods"}:                                           columns("Phase:string:.status.phase, Node:string:.spec.nodeName, IP:string:.status.podIP"),
	{Resource: "services"}:                                       columns("Type:string:.spec.type, Cluster-IP:string:.spec.clusterIP"),
	{Group: "apps", Resource: "daemonsets"}:                      columns("Desired:integer:.status.desiredNumberScheduled, Current:integer:.status.currentNumberScheduled, Ready:integer:.status.numberReady, Available:integer:.status.numberAvailable"),
	{Group: "apps", Resource: "deployments"}:                     columns("Desired:integer:.spec.replicas, Ready:integer:.status.readyReplicas, Up-to-date:integer:.status.updatedReplicas, Available:integer:.status.availableReplicas"),
	{Group: "apps", Resource: "replicasets"}:                     columns("Desired:integer:.spec.replicas, Current:integer:.status.replicas, Ready:integer:.status.readyReplicas"),
	{Group: "apps", Resource: "statefulsets"}:                    columns("Desired:integer:.spec.replicas, Ready:integer:.status.readyReplicas"),
	{Group: "autoscaling", Resource: "horizontalpodautoscalers"}: columns("Target:string:.spec.scaleTargetRef.name, Min:integer:.spec.minReplicas, Max:integer:.spec.maxReplicas, Replicas:integer:.status.currentReplicas"),
	{Group: "batch", Resource: "cronjobs"}:                       columns("Schedule:string:.spec.schedule, Suspend:boolean:.spec.suspend, Last schedule:date:.status.lastScheduleTime"),
	{Group: "batch", Resource: "jobs"}:                           columns("Completions:integer:.spec.completions, Active:integer:.status.active, Succeeded:integer:.status.succeeded, Failed:integer:.status.failed"),
	{Group: "networking.k8s.io", Resource: "ingresses"}:          columns("Class:string:.spec.ingressClassName"),
}

// columns parses columns of the form "Name:type:path", separated by commas.
func columns(text string) []crd.Column {
	var columns []crd.Column
	for column := range strings.SplitSeq(text, ", ") {
		parts := strings.SplitN(column, ":", 3)
		columns = append(columns, crd.Column{Name: parts[0], Type: parts[1], JSONPath: parts[2]})
	}
	return columns
}
