package offline

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/readapi"
)

// known is a kind that every cluster has. What is inferred of a kind from its objects is right for most of them, but
// not the short names and categories that people type, nor the scope of what stands in a manifest without its
// namespace; so the kinds that can be listed and watched in Kubernetes 1.37 are written down.
type known struct {
	group, kind, plural string
	namespaced          bool
	shortNames          string
	// fields are what field selectors may use beside name and namespace: those that kubectl itself uses.
	fields string
}

const (
	inNamespace = true
	inCluster   = false
)

var knownKinds = []known{
	{"", "ConfigMap", "configmaps", inNamespace, "cm", ""},
	{"", "Endpoints", "endpoints", inNamespace, "ep", ""},
	{"", "Event", "events", inNamespace, "ev", eventFields},
	{"", "LimitRange", "limitranges", inNamespace, "limits", ""},
	{"", "Namespace", "namespaces", inCluster, "ns", ".status.phase"},
	{"", "Node", "nodes", inCluster, "no", ".spec.unschedulable"},
	{"", "PersistentVolume", "persistentvolumes", inCluster, "pv", ""},
	{"", "PersistentVolumeClaim", "persistentvolumeclaims", inNamespace, "pvc", ""},
	{"", "Pod", "pods", inNamespace, "po", ".spec.nodeName .spec.restartPolicy .spec.serviceAccountName .status.phase .status.podIP"},
	{"", "PodTemplate", "podtemplates", inNamespace, "", ""},
	{"", "ReplicationController", "replicationcontrollers", inNamespace, "rc", ".status.replicas"},
	{"", "ResourceQuota", "resourcequotas", inNamespace, "quota", ""},
	{"", "Secret", "secrets", inNamespace, "", ".type"},
	{"", "Service", "services", inNamespace, "svc", ".spec.clusterIP .spec.type"},
	{"", "ServiceAccount", "serviceaccounts", inNamespace, "sa", ""},
	{"admissionregistration.k8s.io", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", inCluster, "", ""},
	{"admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", inCluster, "", ""},
	{"admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", inCluster, "", ""},
	{"admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", inCluster, "", ""},
	{"admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", inCluster, "", ""},
	{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", inCluster, "", ""},
	{"apps", "ControllerRevision", "controllerrevisions", inNamespace, "", ""},
	{"apps", "DaemonSet", "daemonsets", inNamespace, "ds", ""},
	{"apps", "Deployment", "deployments", inNamespace, "deploy", ""},
	{"apps", "ReplicaSet", "replicasets", inNamespace, "rs", ".status.replicas"},
	{"apps", "StatefulSet", "statefulsets", inNamespace, "sts", ""},
	{"autoscaling", "HorizontalPodAutoscaler", "horizontalpodautoscalers", inNamespace, "hpa", ""},
	{"batch", "CronJob", "cronjobs", inNamespace, "cj", ""},
	{"batch", "Job", "jobs", inNamespace, "", ".status.successful"},
	{"certificates.k8s.io", "CertificateSigningRequest", "certificatesigningrequests", inCluster, "csr", ".spec.signerName"},
	{"certificates.k8s.io", "ClusterTrustBundle", "clustertrustbundles", inCluster, "", ".spec.signerName"},
	{"certificates.k8s.io", "PodCertificateRequest", "podcertificaterequests", inNamespace, "", ""},
	{"coordination.k8s.io", "Lease", "leases", inNamespace, "", ""},
	{"discovery.k8s.io", "EndpointSlice", "endpointslices", inNamespace, "", ""},
	{"events.k8s.io", "Event", "events", inNamespace, "ev", ""},
	{"flowcontrol.apiserver.k8s.io", "FlowSchema", "flowschemas", inCluster, "", ""},
	{"flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration", "prioritylevelconfigurations", inCluster, "", ""},
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

// inAll are the plurals of the category "all".
const inAll = " pods replicationcontrollers services daemonsets deployments replicasets statefulsets horizontalpodautoscalers cronjobs jobs "

// knownType returns the type of a kind that every cluster has, in one version.
func knownType(gvk schema.GroupVersionKind) (readapi.Type, bool) {
	for _, k := range knownKinds {
		if k.group != gvk.Group || k.kind != gvk.Kind {
			continue
		}
		t := readapi.Type{
			Group: k.group, Namespaced: k.namespaced,
			Names:    crd.Names{Plural: k.plural, Kind: k.kind, ShortNames: strings.Fields(k.shortNames)},
			Versions: []readapi.Version{k.version(gvk.Version)},
		}
		if strings.Contains(inAll, " "+k.plural+" ") {
			t.Names.Categories = []string{"all"}
		}
		return t, true
	}
	return readapi.Type{}, false
}

func (k known) version(name string) readapi.Version {
	return readapi.Version{Name: name, Subresources: []string{"status"}, SelectableFields: strings.Fields(k.fields)}
}

// inferType makes a type up from a kind and where its objects are.
func inferType(gvk schema.GroupVersionKind, namespaced bool) readapi.Type {
	plural, singular := meta.UnsafeGuessKindToResource(gvk)
	return readapi.Type{
		Group: gvk.Group, Namespaced: namespaced,
		Names:    crd.Names{Plural: plural.Resource, Singular: singular.Resource, Kind: gvk.Kind},
		Versions: []readapi.Version{{Name: gvk.Version}},
	}
}
