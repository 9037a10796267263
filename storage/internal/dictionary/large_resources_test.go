package dictionary_test

import "fmt"

// policyReport is a Kyverno report about one resource. Many reports contain results of the same policies.
func policyReport(n int) []byte {
	s := newValueSource(5, n)
	target, created := s.uid(), s.time()
	seconds := 1_760_000_000 + s.IntN(10_000_000)
	results := list(18+s.IntN(10), func(k int) string {
		policy := (k*7 + s.IntN(3)) % 60
		return fmt.Sprintf(`{"category":"Pod Security Standards (Restricted)","message":"validation rule 'check-%[1]d-%[2]s' passed: containers must set %[2]s as the standard of the platform team says, see https://docs.example.com/policies/%[1]d","policy":"require-%[2]s-%[1]d","properties":{"controls":"check-%[1]d","process":"background scan"},"result":"%[3]s","rule":"check-%[1]d-%[2]s","scored":true,"severity":"medium","source":"kyverno","timestamp":{"nanos":0,"seconds":%[4]d}}`,
			policy, words[policy%len(words)], []string{"pass", "pass", "pass", "fail",
				"skip"}[s.IntN(5)], seconds+k%2)
	})
	fields := managedFieldsEntry("reports-controller", "wgpolicyk8s.io/v1alpha2", "", created,
		`{"f:metadata":{"f:labels":`+keys("app.kubernetes.io/managed-by", "audit.kyverno.io/resource.uid")+
			`,"f:ownerReferences":{".":{},"k:{\"uid\":\"`+target+
			`\"}":{}}},"f:results":{},"f:scope":{},"f:summary":`+keys("error", "fail", "pass",
			"skip", "warn")+`}`)
	return fmt.Appendf(
		nil, `{"apiVersion":"wgpolicyk8s.io/v1alpha2","kind":"PolicyReport","metadata":{"creationTimestamp":%[1]q,"generation":%[2]d,"labels":{"app.kubernetes.io/managed-by":"kyverno"},"managedFields":[%[3]s],"name":%[4]q,"namespace":"team-%[5]d","ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"%[6]s-%[7]d","uid":%[4]q}],"resourceVersion":"%[8]d","uid":%[9]q},"results":[%[10]s],"scope":{"apiVersion":"v1","kind":"Pod","name":"%[6]s-%[7]d","namespace":"team-%[5]d","uid":%[4]q},"summary":{"error":0,"fail":%[2]d,"pass":12,"skip":1,"warn":0}}`,
		created, 1+s.IntN(9), fields, target, n%40, s.word(), n, 700_000_000+n, s.uid(), results)
}

// workflow is a run of one of 50 Argo workflow templates.
func workflow(n int) []byte {
	template := n % 50
	t, s := newValueSource(6, template), newValueSource(7, n)
	name := fmt.Sprintf("%s-%d-%s", t.word(), template, s.hex(5))
	steps := 5 + t.IntN(5)
	templates := list(steps, func(k int) string {
		return fmt.Sprintf(`{"container":{"args":["--step=%[1]d","--input={{inputs.parameters.%[2]s}}"],"command":["/bin/%[2]s"],"env":[{"name":"STEP","value":"%[1]d"}],"image":"registry.example.com/%[2]s:v%[3]d","name":"","resources":{"requests":{"cpu":"100m","memory":"256Mi"}}},"inputs":{"parameters":[{"name":%[2]q}]},"metadata":{},"name":"step-%[1]d-%[2]s","outputs":{}}`, k, t.word(), t.IntN(40))
	})
	nodes := list(steps, func(k int) string {
		id := fmt.Sprintf("%s-%d", name, s.Int32())
		return fmt.Sprintf(`%[1]q:{"boundaryID":%[2]q,"displayName":"step-%[3]d","finishedAt":%[4]q,"hostNodeName":"node-%[5]d.example.com","id":%[1]q,"inputs":{"parameters":[{"name":"input","value":"s3://data/%[6]s/part-%[7]d"}]},"name":"%[2]s.step-%[3]d","outputs":{"artifacts":[{"name":"main-logs","s3":{"key":"%[2]s/%[1]s/main.log"}}],"exitCode":"0"},"phase":"Succeeded","progress":"1/1","resourcesDuration":{"cpu":%[8]d,"memory":%[9]d},"startedAt":%[4]q,"templateName":"step-%[3]d","templateScope":"local/%[2]s","type":"Pod"}`,
			id, name, k, s.time(), s.IntN(400), s.word(), s.IntN(10_000), s.IntN(300), s.IntN(900))
	})
	fields := managedFieldsEntry("argo", "argoproj.io/v1alpha1", "", s.time(),
		`{"f:metadata":{"f:generateName":{},"f:labels":`+keys("workflows.argoproj.io/workflow-template")+
			`},"f:spec":{}}`) +
		"," + managedFieldsEntry("workflow-controller", "argoproj.io/v1alpha1", "", s.time(),
		`{"f:metadata":{"f:labels":`+keys("workflows.argoproj.io/completed", "workflows.argoproj.io/phase")+
			`},"f:status":`+keys("artifactRepositoryRef", "conditions", "finishedAt", "nodes", "phase",
			"progress", "resourcesDuration", "startedAt", "storedTemplates")+`}`)
	spec := fmt.Sprintf(`"entrypoint":"step-0","serviceAccountName":"argo","templates":[%s],"ttlStrategy":{"secondsAfterCompletion":86400}`, templates)
	return fmt.Appendf(
		nil, `{"apiVersion":"argoproj.io/v1alpha1","kind":"Workflow","metadata":{"creationTimestamp":%[1]q,"generateName":"%[2]s-%[3]d-","generation":%[4]d,"labels":{"workflows.argoproj.io/completed":"true","workflows.argoproj.io/phase":"Succeeded"},"managedFields":[%[5]s],"name":%[6]q,"namespace":"team-%[3]d","resourceVersion":"%[7]d","uid":%[8]q},"spec":{"workflowTemplateRef":{"name":"%[2]s-%[3]d"}},"status":{"artifactRepositoryRef":{"artifactRepository":{"archiveLogs":true,"s3":{"bucket":"artifacts","endpoint":"minio.argo:9000","insecure":true}},"default":true},"conditions":[{"status":"False","type":"PodRunning"},{"status":"True","type":"Completed"}],"finishedAt":%[1]q,"nodes":{%[9]s},"phase":"Succeeded","progress":"%[10]d/%[10]d","startedAt":%[1]q,"storedWorkflowTemplateSpec":{%[11]s}}}`,
		s.time(), t.word(), template, 1+s.IntN(30), fields, name, 700_000_000+
			n, s.uid(), nodes, steps, spec)
}

// largeCertificate has many names and a long history in its status.
func largeCertificate(n int) []byte {
	s := newValueSource(8, n)
	name, created := fmt.Sprintf("%s-%d", s.word(), n), s.time()
	names := list(90+s.IntN(30), func(k int) string {
		return fmt.Sprintf(`"%s-%d.%s.team-%d.example.com"`,
			s.word(), k, name, n%40)
	})
	conditions := list(12, func(k int) string {
		return fmt.Sprintf(`{"lastTransitionTime":%q,"message":"Certificate is up to date and has not expired: the secret %s-tls holds revision %d of it","observedGeneration":%d,"reason":"Ready","status":"True","type":"Ready%d"}`, s.time(), name, s.IntN(90), 1+s.IntN(9), k)
	})
	condition := keys("lastTransitionTime", "message", "observedGeneration", "reason", "status", "type")
	fields := managedFieldsEntry("helm", "cert-manager.io/v1", "", created, `{"f:spec":`+keys("commonName", "dnsNames",
		"duration", "issuerRef", "privateKey", "renewBefore", "secretName", "usages")+`}`) +
		"," + managedFieldsEntry("cert-manager-certificates-readiness", "cert-manager.io/v1", "status", s.time(),
		`{"f:status":{".":{},"f:conditions":{`+list(12, func(k int) string {
			return fmt.Sprintf(`"k:{\"type\":\"Ready%d\"}":%s`, k, condition)
		})+`},"f:notAfter":{},"f:notBefore":{},"f:renewalTime":{},"f:revision":{}}}`)
	return fmt.Appendf(
		nil, `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"annotations":{"meta.helm.sh/release-name":%[1]q},"creationTimestamp":%[2]q,"generation":%[3]d,"labels":{"app.kubernetes.io/managed-by":"Helm"},"managedFields":[%[4]s],"name":%[1]q,"namespace":"team-%[5]d","resourceVersion":"%[6]d","uid":%[7]q},"spec":{"commonName":"%[1]s.example.com","dnsNames":[%[8]s],"duration":"2160h0m0s","issuerRef":{"group":"cert-manager.io","kind":"ClusterIssuer","name":"letsencrypt"},"secretName":"%[1]s-tls"},"status":{"conditions":[%[9]s],"notAfter":%[10]q,"notBefore":%[2]q,"revision":7}}`,
		name, created, 1+s.IntN(9), fields, n%40, 700_000_000+n, s.uid(), names, conditions, s.time())
}

// definition returns a CustomResourceDefinition whose schema shares parts with others.
func definition(n int) []byte {
	s := newValueSource(9, n)
	kind, group := fmt.Sprintf("%s%d", s.word(), n), fmt.Sprintf("%s.example.com", words[n%len(words)])
	property := func(k int) string {
		switch s.IntN(4) {
		case 0:
			return fmt.Sprintf(`"%s%d":%s`, s.word(), k, commonSchemas[s.IntN(len(commonSchemas))])
		case 1:
			return fmt.Sprintf(`"%[1]s%[2]d":{"description":"%[1]s of the %[3]s: how many there are to be of it, and where they go.","format":"int32","minimum":%[2]d,"type":"integer"}`, s.word(), k, s.word())
		default:
			return fmt.Sprintf(`"%[1]s%[2]d":{"description":"%[1]s says what becomes of the %[3]s of the %[4]s while %[5]s is under way.","enum":[%[1]q,%[3]q],"type":"string"}`, s.word(), k, s.word(), s.word(), s.word())
		}
	}
	created := s.time()
	fields := managedFieldsEntry("helm", "apiextensions.k8s.io/v1", "", created, `{"f:spec":`+keys("conversion", "group",
		"names", "scope", "versions")+`}`) +
		"," + managedFieldsEntry("kube-apiserver", "apiextensions.k8s.io/v1", "status", created,
		`{"f:status":`+keys("acceptedNames", "conditions", "storedVersions")+`}`)
	return fmt.Appendf(
		nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"creationTimestamp":%[1]q,"generation":1,"managedFields":[%[2]s],"name":"%[3]ss.%[4]s","resourceVersion":"%[5]d","uid":%[6]q},"spec":{"conversion":{"strategy":"None"},"group":%[4]q,"names":{"kind":%[3]q,"listKind":"%[3]sList","plural":"%[3]ss","singular":%[3]q},"scope":"Namespaced","versions":[{"name":"v1","schema":{"openAPIV3Schema":{"description":"%[3]s is the Schema for the %[3]ss API.","properties":{"apiVersion":{"description":"APIVersion defines the versioned schema of this representation of an object.\nServers should convert recognized schemas to the latest internal value, and\nmay reject unrecognized values.\nMore info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources","type":"string"},"kind":{"description":"Kind is a string value representing the REST resource this object represents.\nServers may infer this from the endpoint the client submits requests to.\nCannot be updated.\nIn CamelCase.\nMore info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds","type":"string"},"metadata":{"type":"object"},"spec":{"properties":{%[7]s},"type":"object"},"status":{"properties":{"conditions":{"items":%[8]s,"type":"array","x-kubernetes-list-map-keys":["type"],"x-kubernetes-list-type":"map"}},"type":"object"}},"type":"object"}},"served":true,"storage":true,"subresources":{"status":{}}}]},"status":{"acceptedNames":{"kind":%[3]q,"plural":"%[3]ss"},"conditions":[{"lastTransitionTime":%[1]q,"message":"no conflicts found","reason":"NoConflicts","status":"True","type":"NamesAccepted"},{"lastTransitionTime":%[1]q,"message":"the initial names have been accepted","reason":"InitialNamesAccepted","status":"True","type":"Established"}],"storedVersions":["v1"]}}`,
		created, fields, kind, group, 700_000_000+n, s.uid(), list(20+s.IntN(15),
			property), commonSchemas[0])
}

// commonSchemas are the shared parts of definitions.
var commonSchemas = []string{
	`{"description":"Condition contains details for one aspect of the current state of this API Resource.","properties":{"lastTransitionTime":{"description":"lastTransitionTime is the last time the condition transitioned from one status to another.\nThis should be when the underlying condition changed.  If that is not known, then using the time when the API field changed is acceptable.","format":"date-time","type":"string"},"message":{"description":"message is a human readable message indicating details about the transition.\nThis may be an empty string.","maxLength":32768,"type":"string"},"observedGeneration":{"description":"observedGeneration represents the .metadata.generation that the condition was set based upon.","format":"int64","minimum":0,"type":"integer"},"reason":{"maxLength":1024,"minLength":1,"pattern":"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$","type":"string"},"status":{"enum":["True","False","Unknown"],"type":"string"},"type":{"maxLength":316,"type":"string"}},"required":["lastTransitionTime","message","reason","status","type"],"type":"object"}`,
	`{"description":"A label selector is a label query over a set of resources. The result of matchLabels and matchExpressions are ANDed.","properties":{"matchExpressions":{"description":"matchExpressions is a list of label selector requirements. The requirements are ANDed.","items":{"properties":{"key":{"description":"key is the label key that the selector applies to.","type":"string"},"operator":{"description":"operator represents a key's relationship to a set of values.\nValid operators are In, NotIn, Exists and DoesNotExist.","type":"string"},"values":{"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"required":["key","operator"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"matchLabels":{"additionalProperties":{"type":"string"},"type":"object"}},"type":"object","x-kubernetes-map-type":"atomic"}`,
	`{"description":"SecretKeySelector selects a key of a Secret.","properties":{"key":{"description":"The key of the secret to select from.  Must be a valid secret key.","type":"string"},"name":{"default":"","description":"Name of the referent.\nThis field is effectively required, but due to backwards compatibility is\nallowed to be empty.","type":"string"},"optional":{"description":"Specify whether the Secret or its key must be defined","type":"boolean"}},"required":["key"],"type":"object","x-kubernetes-map-type":"atomic"}`,
	`{"description":"ResourceRequirements describes the compute resource requirements.","properties":{"limits":{"additionalProperties":{"anyOf":[{"type":"integer"},{"type":"string"}],"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$","x-kubernetes-int-or-string":true},"type":"object"},"requests":{"additionalProperties":{"anyOf":[{"type":"integer"},{"type":"string"}],"x-kubernetes-int-or-string":true},"type":"object"}},"type":"object"}`,
}
