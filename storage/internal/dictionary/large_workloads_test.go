package dictionary_test

import (
	"encoding/json"
	"fmt"
)

// containers returns the containers of an application: main, and two sidecars that all applications have. All
// objects of one application have the same.
func containers(app int, revision int) string {
	s := newValueSource(10, app)
	name := s.word()
	env := list(8+s.IntN(14), func(n int) string {
		if n%4 == 3 {
			return fmt.Sprintf(`{"name":"%s_SECRET_%d","valueFrom":{"secretKeyRef":{"key":"password-%d","name":"%s-%d-credentials"}}}`, s.word(), n, n, name, app)
		}
		return fmt.Sprintf(`{"name":"%s_URL_%d","value":"https://%s-%d.%s.svc.cluster.local:8443/v1"}`,
			s.word(), n, s.word(), s.IntN(100), s.word())
	})
	probe := func(path string) string {
		return fmt.Sprintf(`{"failureThreshold":3,"httpGet":{"path":%q,"port":%d,"scheme":"HTTP"},"initialDelaySeconds":10,"periodSeconds":10,"successThreshold":1,"timeoutSeconds":%d}`, path, 8000+app%90, 1+app%5)
	}
	return fmt.Sprintf(`{"args":["--config=/etc/%[1]s/config.yaml","--listen=:%[2]d","--log-format=json"],"env":[%[3]s],"image":"registry.example.com/%[1]s/app-%[4]d:v1.%[5]d.0","imagePullPolicy":"IfNotPresent","livenessProbe":%[6]s,"name":"main","ports":[{"containerPort":%[2]d,"name":"http","protocol":"TCP"}],"readinessProbe":%[7]s,"resources":{"limits":{"cpu":"%[8]d00m","memory":"%[9]dMi"},"requests":{"cpu":"100m","memory":"%[9]dMi"}},"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true,"runAsNonRoot":true},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","volumeMounts":[{"mountPath":"/etc/%[1]s","name":"config"},{"mountPath":"/tmp","name":"tmp"}]},`,
		name, 8000+app%90, env, app, revision, probe("/healthz"), probe("/readyz"), 1+
			app%9, 128*(1+app%8)) +
		sidecars
}

const sidecars = `{"args":["proxy","sidecar","--domain","$(POD_NAMESPACE).svc.cluster.local","--proxyLogLevel=warning","--proxyComponentLogLevel=misc:error","--log_output_level=default:info"],"env":[{"name":"PILOT_CERT_PROVIDER","value":"istiod"},{"name":"CA_ADDR","value":"istiod.istio-system.svc:15012"},{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}},{"name":"POD_NAMESPACE","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}},{"name":"INSTANCE_IP","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"status.podIP"}}},{"name":"SERVICE_ACCOUNT","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"spec.serviceAccountName"}}},{"name":"ISTIO_META_CLUSTER_ID","value":"Kubernetes"},{"name":"TRUST_DOMAIN","value":"cluster.local"}],"image":"docker.io/istio/proxyv2:1.27.1","imagePullPolicy":"IfNotPresent","name":"istio-proxy","ports":[{"containerPort":15090,"name":"http-envoy-prom","protocol":"TCP"}],"readinessProbe":{"failureThreshold":4,"httpGet":{"path":"/healthz/ready","port":15021,"scheme":"HTTP"},"periodSeconds":15,"successThreshold":1,"timeoutSeconds":3},"resources":{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"100m","memory":"128Mi"}},"securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]},"privileged":false,"readOnlyRootFilesystem":true,"runAsGroup":1337,"runAsNonRoot":true,"runAsUser":1337},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","volumeMounts":[{"mountPath":"/var/run/secrets/workload-spiffe-uds","name":"workload-socket"},{"mountPath":"/var/run/secrets/istio","name":"istiod-ca-cert"},{"mountPath":"/var/lib/istio/data","name":"istio-data"},{"mountPath":"/etc/istio/proxy","name":"istio-envoy"}]}`

// deployment returns the Deployment of an application.
func deployment(n int) []byte {
	s := newValueSource(1, n)
	namespace, name := fmt.Sprintf("team-%d", n%40), fmt.Sprintf("%s-%d", s.word(), n)
	created, updated := s.time(), s.time()
	spec := fmt.Sprintf(`{"progressDeadlineSeconds":600,"replicas":%[1]d,"revisionHistoryLimit":10,"selector":{"matchLabels":{"app":%[2]q}},"strategy":{"rollingUpdate":{"maxSurge":"25%%","maxUnavailable":"25%%"},"type":"RollingUpdate"},"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%[3]q},"labels":{"app":%[2]q,"version":"v1"}},"spec":{"containers":[%[4]s],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","serviceAccountName":%[2]q,"terminationGracePeriodSeconds":30,"volumes":[{"configMap":{"defaultMode":420,"name":"%[5]s-config"},"name":"config"},{"emptyDir":{},"name":"tmp"}]}}}`,
		1+s.IntN(9), name, updated, containers(n, s.IntN(20)), name)
	applied := fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{},"name":%q,"namespace":%q},"spec":{"template":{"spec":{"containers":[%s]}}}}`, name, namespace, containers(n, s.IntN(20)))
	quoted, err := json.Marshal(applied)
	if err != nil {
		panic(err)
	}
	container := `{".":{},"f:args":{},"f:env":` + keys("URL", "SECRET") +
		`,"f:image":{},"f:imagePullPolicy":{},"f:livenessProbe":` + keys("failureThreshold", "httpGet",
		"periodSeconds", "timeoutSeconds") +
		`,"f:name":{},"f:ports":{".":{},"k:{\"containerPort\":8080,\"protocol\":\"TCP\"}":` +
		keys("containerPort", "name", "protocol") + `},"f:readinessProbe":` + keys("failureThreshold",
		"httpGet", "periodSeconds", "timeoutSeconds") + `,"f:resources":` + keys("limits", "requests") +
		`,"f:securityContext":` + keys("allowPrivilegeEscalation", "capabilities", "readOnlyRootFilesystem",
		"runAsNonRoot") + `,"f:volumeMounts":` + keys("config", "tmp") + `}`
	fields := managedFieldsEntry("kubectl-client-side-apply", "apps/v1", "", created, `{"f:metadata":{"f:annotations":`+
		keys("kubectl.kubernetes.io/last-applied-configuration")+
		`},"f:spec":{"f:replicas":{},"f:selector":{},"f:strategy":`+keys("rollingUpdate", "type")+
		`,"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":`+container+
		`,"k:{\"name\":\"istio-proxy\"}":`+container+`}}}}}`) +
		"," + managedFieldsEntry("kube-controller-manager", "apps/v1", "status", updated,
		`{"f:status":`+keys("availableReplicas", "conditions", "observedGeneration", "readyReplicas",
			"replicas", "updatedReplicas")+`}`)
	return fmt.Appendf(
		nil, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{"deployment.kubernetes.io/revision":"%d","kubectl.kubernetes.io/last-applied-configuration":%s},"creationTimestamp":%q,"generation":%d,"labels":{"app":%[5]q},"managedFields":[%[6]s],"name":%[5]q,"namespace":%[7]q,"resourceVersion":"%[8]d","uid":%[9]q},"spec":%[10]s,"status":{"availableReplicas":3,"conditions":[{"lastTransitionTime":%[11]q,"lastUpdateTime":%[11]q,"message":"Deployment has minimum availability.","reason":"MinimumReplicasAvailable","status":"True","type":"Available"},{"lastTransitionTime":%[3]q,"lastUpdateTime":%[11]q,"message":"ReplicaSet \"%[5]s-%[12]s\" has successfully progressed.","reason":"NewReplicaSetAvailable","status":"True","type":"Progressing"}],"observedGeneration":%[4]d,"readyReplicas":3,"replicas":3,"updatedReplicas":3}}`,
		1+s.IntN(30), quoted, created, 1+s.IntN(40), name, fields, namespace, 700_000_000+
			n, s.uid(), spec, updated, s.hex(10))
}

// pod returns one of twenty Pods of an application.
func pod(n int) []byte {
	app := n / 20
	a, s := newValueSource(2, app), newValueSource(3, n)
	owner := fmt.Sprintf("%s-%d-%s", a.word(), app, a.hex(10))
	namespace, ownerUID := fmt.Sprintf("team-%d", app%40), a.uid()
	name, created, node, token := owner+"-"+s.hex(5), s.time(), fmt.Sprintf("node-%d.example.com",
		s.IntN(400)), s.hex(5)
	address := fmt.Sprintf("10.%d.%d.%d", s.IntN(250), s.IntN(250), s.IntN(250))
	condition := func(kind string) string {
		return fmt.Sprintf(`{"lastProbeTime":null,"lastTransitionTime":%q,"status":"True","type":%q}`,
			created, kind)
	}
	status := func(container string) string {
		return fmt.Sprintf(`{"containerID":"containerd://%s","image":"registry.example.com/%s:v1","imageID":"registry.example.com/%s@sha256:%s","lastState":{},"name":%q,"ready":true,"restartCount":0,"started":true,"state":{"running":{"startedAt":%q}},"volumeMounts":[{"mountPath":"/tmp","name":"tmp"},{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-%s","readOnly":true,"recursiveReadOnly":"Disabled"}]}`,
			s.hex(64), container, container, newValueSource(4, app).hex(64), container, created, token)
	}
	fields := managedFieldsEntry("kube-controller-manager", "v1", "", created,
		`{"f:metadata":{"f:generateName":{},"f:labels":`+keys("app", "pod-template-hash", "version")+
			`,"f:ownerReferences":{".":{},"k:{\"uid\":\"`+ownerUID+
			`\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":`+keys("args", "env", "image",
			"imagePullPolicy", "livenessProbe", "name", "ports", "readinessProbe",
			"resources", "securityContext", "terminationMessagePath", "terminationMessagePolicy", "volumeMounts")+`,"k:{\"name\":\"istio-proxy\"}":`+keys("args", "env", "image", "imagePullPolicy", "name", "ports", "readinessProbe", "resources", "securityContext", "terminationMessagePath", "terminationMessagePolicy", "volumeMounts")+`},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:serviceAccount":{},"f:serviceAccountName":{},"f:terminationGracePeriodSeconds":{},"f:volumes":`+keys("config", "tmp")+`}}`) +
		"," + managedFieldsEntry("kubelet", "v1", "status", created,
		`{"f:status":{"f:conditions":{"k:{\"type\":\"ContainersReady\"}":`+keys("lastProbeTime",
			"lastTransitionTime", "status", "type")+`,"k:{\"type\":\"Initialized\"}":`+
			keys("lastProbeTime", "lastTransitionTime", "status", "type")+`,"k:{\"type\":\"Ready\"}":`+
			keys("lastProbeTime", "lastTransitionTime", "status", "type")+
			`},"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:phase":{},"f:podIP":{},"f:podIPs":{".":{},"k:{\"ip\":\"`+address+`\"}":`+keys("ip")+`},"f:startTime":{}}}`)
	return fmt.Appendf(
		nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"annotations":{"istio.io/rev":"default","kubectl.kubernetes.io/default-container":"main","prometheus.io/path":"/stats/prometheus","prometheus.io/port":"15020","prometheus.io/scrape":"true","sidecar.istio.io/status":"{\"initContainers\":[\"istio-init\"],\"containers\":[\"istio-proxy\"],\"volumes\":[\"workload-socket\",\"istio-envoy\",\"istio-data\",\"istiod-ca-cert\"],\"revision\":\"default\"}"},"creationTimestamp":%[1]q,"generateName":"%[2]s-","generation":1,"labels":{"app":%[3]q,"pod-template-hash":%[4]q,"version":"v1"},"managedFields":[%[5]s],"name":%[6]q,"namespace":%[7]q,"ownerReferences":[{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"ReplicaSet","name":%[2]q,"uid":%[8]q}],"resourceVersion":"%[9]d","uid":%[10]q},"spec":{"containers":[%[11]s],"dnsPolicy":"ClusterFirst","enableServiceLinks":true,"nodeName":%[12]q,"preemptionPolicy":"PreemptLowerPriority","priority":0,"restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"serviceAccount":%[3]q,"serviceAccountName":%[3]q,"terminationGracePeriodSeconds":30,"tolerations":[{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300},{"effect":"NoExecute","key":"node.kubernetes.io/unreachable","operator":"Exists","tolerationSeconds":300}],"volumes":[{"configMap":{"defaultMode":420,"name":"%[3]s-config"},"name":"config"},{"emptyDir":{},"name":"tmp"},{"name":"kube-api-access-%[13]s","projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}},{"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"},"path":"namespace"}]}}]}}]},"status":{"conditions":[%[14]s,%[15]s,%[16]s,%[17]s],"containerStatuses":[%[18]s,%[19]s],"hostIP":"192.168.%[20]d.7","phase":"Running","podIP":%[21]q,"podIPs":[{"ip":%[21]q}],"qosClass":"Burstable","startTime":%[1]q}}`,
		created, owner, fmt.Sprintf("app-%d",
			app), a.hex(10), fields, name, namespace, ownerUID, 700_000_000+
			n, s.uid(), containers(app, app%20), node, token,
		condition("Initialized"), condition("Ready"), condition("ContainersReady"), condition(
			"PodScheduled"), status("main"), status("istio-proxy"), s.IntN(250), address)
}
