// Package builtin lists the types of Kubernetes 1.37 that can be listed and watched.
package builtin

import "slices"

// Type is a type that every cluster has.
type Type struct {
	Group, Kind, Plural string
	Namespaced          bool
	// ShortNames are separated by spaces.
	ShortNames string
	// Fields are the selectable fields that kubectl itself uses, beside name and namespace, separated by
	// spaces.
	Fields string
}

const (
	inNamespace = true
	inCluster   = false
)

// Find returns the type of a group and kind or, with an empty kind, plural name.
func Find(group, kind, plural string) (Type, bool) {
	i := slices.IndexFunc(Types, func(t Type) bool {
		return t.Group == group && (kind == "" && t.Plural == plural || kind != "" && t.Kind == kind)
	})
	if i < 0 {
		return Type{}, false
	}
	return Types[i], true
}

// Types are sorted by group and kind.
var Types = []Type{
	{"", "ConfigMap", "configmaps", inNamespace, "cm", ""},
	{"", "Endpoints", "endpoints", inNamespace, "ep", ""},
	{"", "Event", "events", inNamespace, "ev", eventFields},
	{"", "LimitRange", "limitranges", inNamespace, "limits", ""},
	{"", "Namespace", "namespaces", inCluster, "ns", ".status.phase"},
	{"", "Node", "nodes", inCluster, "no", ".spec.unschedulable"},
	{"", "PersistentVolume", "persistentvolumes", inCluster, "pv", ""},
	{"", "PersistentVolumeClaim", "persistentvolumeclaims", inNamespace, "pvc", ""},
	{"", "Pod", "pods", inNamespace, "po",
		".spec.nodeName .spec.restartPolicy .spec.serviceAccountName .status.phase .status.podIP"},
	{"", "PodTemplate", "podtemplates", inNamespace, "", ""},
	{"", "ReplicationController", "replicationcontrollers", inNamespace, "rc", ".status.replicas"},
	{"", "ResourceQuota", "resourcequotas", inNamespace, "quota", ""},
	{"", "Secret", "secrets", inNamespace, "", ".type"},
	{"", "Service", "services", inNamespace, "svc", ".spec.clusterIP .spec.type"},
	{"", "ServiceAccount", "serviceaccounts", inNamespace, "sa", ""},
	{"admissionregistration.k8s.io", "MutatingAdmissionPolicy", "mutatingadmissionpolicies",
		inCluster, "", ""},
	{"admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings",
		inCluster, "", ""},
	{"admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations",
		inCluster, "", ""},
	{"admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "validatingadmissionpolicies",
		inCluster, "", ""},
	{"admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings",
		inCluster, "", ""},
	{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations",
		inCluster, "", ""},
	{"apps", "ControllerRevision", "controllerrevisions", inNamespace, "", ""},
	{"apps", "DaemonSet", "daemonsets", inNamespace, "ds", ""},
	{"apps", "Deployment", "deployments", inNamespace, "deploy", ""},
	{"apps", "ReplicaSet", "replicasets", inNamespace, "rs", ".status.replicas"},
	{"apps", "StatefulSet", "statefulsets", inNamespace, "sts", ""},
	{"autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", inNamespace, "hpa", ""},
	{"batch", "CronJob", "cronjobs", inNamespace, "cj", ""},
	{"batch", "Job", "jobs", inNamespace, "", ".status.successful"},
	{"certificates.k8s.io", "CertificateSigningRequest", "certificatesigningrequests", inCluster, "csr",
		".spec.signerName"},
	{"certificates.k8s.io", "ClusterTrustBundle", "clustertrustbundles", inCluster, "", ".spec.signerName"},
	{"certificates.k8s.io", "PodCertificateRequest", "podcertificaterequests", inNamespace, "", ""},
	{"coordination.k8s.io", "Lease", "leases", inNamespace, "", ""},
	{"discovery.k8s.io", "EndpointSlice", "endpointslices", inNamespace, "", ""},
	{"events.k8s.io", "Event", "events", inNamespace, "ev", ""},
	{"flowcontrol.apiserver.k8s.io", "FlowSchema", "flowschemas", inCluster, "", ""},
	{"flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", "prioritylevelconfigurations",
		inCluster, "", ""},
	{"networking.k8s.io", "IPAddress", "ipaddresses", inCluster, "ip", ""},
	{"networking.k8s.io", "Ingress", "ingresses", inNamespace, "ing", ""},
	{"networking.k8s.io", "IngressClass", "ingressclasses", inCluster, "", ""},
	{"networking.k8s.io", "NetworkPolicy", "networkpolicies", inNamespace, "netpol", ""},
	{"networking.k8s.io", "ServiceCIDR", "servicecidrs", inCluster, "", ""},
	{"node.k8s.io", "RuntimeClass", "runtimeclasses", inCluster, "", ""},
	{"policy", "PodDisruptionBudget", "poddisruptionbudgets", inNamespace, "pdb", ""},
	{"rbac.authorization.k8s.io", "ClusterRole", "clusterroles", inCluster, "", ""},
	{"rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", inCluster, "", ""},
	{"rbac.authorization.k8s.io", "Role", "roles", inNamespace, "", ""},
	{"rbac.authorization.k8s.io", "RoleBinding", "rolebindings", inNamespace, "", ""},
	{"resource.k8s.io", "DeviceClass", "deviceclasses", inCluster, "", ""},
	{"resource.k8s.io", "DeviceTaintRule", "devicetaintrules", inCluster, "", ""},
	{"resource.k8s.io", "ResourceClaim", "resourceclaims", inNamespace, "", ""},
	{"resource.k8s.io", "ResourceClaimTemplate", "resourceclaimtemplates", inNamespace, "", ""},
	{"resource.k8s.io", "ResourceSlice", "resourceslices", inCluster, "", ""},
	{"scheduling.k8s.io", "PriorityClass", "priorityclasses", inCluster, "pc", ""},
	{"storage.k8s.io", "CSIDriver", "csidrivers", inCluster, "", ""},
	{"storage.k8s.io", "CSINode", "csinodes", inCluster, "", ""},
	{"storage.k8s.io", "CSIStorageCapacity", "csistoragecapacities", inNamespace, "", ""},
	{"storage.k8s.io", "StorageClass", "storageclasses", inCluster, "sc", ""},
	{"storage.k8s.io", "VolumeAttachment", "volumeattachments", inCluster, "", ""},
	{"storage.k8s.io", "VolumeAttributesClass", "volumeattributesclasses", inCluster, "vac", ""},
	{"storagemigration.k8s.io", "StorageVersionMigration", "storageversionmigrations", inCluster, "", ""},
}

const eventFields = ".involvedObject.kind .involvedObject.namespace .involvedObject.name .involvedObject.uid " +
	".involvedObject.apiVersion .involvedObject.resourceVersion .involvedObject.fieldPath .reason .type .reportingComponent"
