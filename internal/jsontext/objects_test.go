package jsontext_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// certificate is a custom resource of about 2 KB, half of it managed fields, as an API server sends it.
func certificate(n int) []byte {
	return fmt.Appendf(
		nil, `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"annotations":{"cert-manager.io/issue-temporary-certificate":"true","team":"team-%[2]d"},"creationTimestamp":"2026-11-20T10:%02[3]d:00Z","generation":1,"labels":{"app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"app-%[2]d","env":"prod"},"managedFields":[{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:cert-manager.io/issue-temporary-certificate":{},"f:team":{}},"f:labels":{".":{},"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},"f:env":{}}},"f:spec":{".":{},"f:dnsNames":{},"f:issuerRef":{},"f:secretName":{}}},"manager":"helm","operation":"Update","time":"2026-11-20T10:%02[3]d:00Z"},{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:notAfter":{},"f:notBefore":{},"f:renewalTime":{},"f:revision":{}}},"manager":"cert-manager-certificates-readiness","operation":"Update","subresource":"status","time":"2026-11-20T10:%02[3]d:05Z"}],"name":"certificate-%[1]d","namespace":"tenant-%[2]d","resourceVersion":"%[4]d","uid":"5f0c1c6e-7d21-4a8e-9d0b-%012[1]d"},"spec":{"dnsNames":["host-%[1]d.example.com","www.host-%[1]d.example.com"],"duration":"2160h0m0s","issuerRef":{"group":"cert-manager.io","kind":"ClusterIssuer","name":"letsencrypt"},"privateKey":{"algorithm":"ECDSA","rotationPolicy":"Always","size":256},"renewBefore":"360h0m0s","secretName":"tls-%[1]d","usages":["digital signature","key encipherment"]},"status":{"conditions":[{"lastTransitionTime":"2026-11-20T10:%02[3]d:05Z","message":"Certificate is up to date and has not expired","observedGeneration":1,"reason":"Ready","status":"True","type":"Ready"}],"notAfter":"2027-02-18T10:%02[3]d:04Z","notBefore":"2026-11-20T10:%02[3]d:04Z","renewalTime":"2027-02-03T10:%02[3]d:04Z","revision":1}}`,
		n, n%50, n%60, 1_000_000+n)
}

// workload is an object of about 10 KB, with container templates like Deployments.
func workload(n int) []byte {
	var containers []string
	for c := range 14 {
		containers = append(containers,
			fmt.Sprintf(`{"args":["--listen=:80%02[2]d","--log-level=info","--shard=%[1]d"],"env":[{"name":"POD_NAME","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.name"}}},{"name":"REGION","value":"eu-%[2]d"},{"name":"TOKEN","value":"%[1]d/%[2]d:\u003csecret\u003e\n"}],"image":"registry.example.com/team/app-%[2]d:v1.%[3]d.0","imagePullPolicy":"IfNotPresent","livenessProbe":{"failureThreshold":3,"httpGet":{"path":"/healthz","port":80%02[2]d,"scheme":"HTTP"},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1},"name":"container-%[2]d","resources":{"limits":{"cpu":"500m","memory":"512Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},"terminationMessagePath":"/dev/termination-log","volumeMounts":[{"mountPath":"/data","name":"data"}]}`, n, c, n%7))
	}
	return fmt.Appendf(
		nil, `{"apiVersion":"apps.example.com/v1","kind":"Workload","metadata":{"annotations":{"deployment.kubernetes.io/revision":"3"},"creationTimestamp":"2026-11-20T10:%02[2]d:00Z","generation":3,"labels":{"app":"app-%[3]d","tier":"backend"},"name":"workload-%[1]d","namespace":"tenant-%[3]d","resourceVersion":"%[4]d","uid":"1a0c1c6e-7d21-4a8e-9d0b-%012[1]d"},"spec":{"paused":false,"ratio":0.75,"replicas":3,"selector":{"matchLabels":{"app":"app-%[3]d"}},"template":{"metadata":{"creationTimestamp":null,"labels":{"app":"app-%[3]d"}},"spec":{"containers":[%[5]s],"volumes":[{"emptyDir":{},"name":"data"}]}}},"status":{"availableReplicas":3,"conditions":[{"lastTransitionTime":"2026-11-20T10:%02[2]d:05Z","message":"Workload has minimum availability.","reason":"MinimumReplicasAvailable","status":"True","type":"Available"}],"observedGeneration":3,"readyReplicas":3,"replicas":3,"updatedReplicas":3}}`,
		n, n%60, n%50, 1_000_000+n, strings.Join(containers, ","))
}

// list returns a list of items as an API server sends it.
func list(count int, item func(int) []byte) []byte {
	var items []string
	for n := range count {
		items = append(items, string(item(n)))
	}
	return fmt.Appendf(
		nil, `{"apiVersion":"cert-manager.io/v1","items":[%s],"kind":"CertificateList","metadata":{"continue":"","resourceVersion":"2000000"}}`, strings.Join(items, ","))
}

func documents(count int, item func(int) []byte) [][]byte {
	all := make([][]byte, count)
	for n := range all {
		all[n] = item(n)
	}
	return all
}

func TestAppendWithout(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":{"b":1}}`:                              `{"a":{}}`,
		`{"a":{"b":[1,{"b":2}],"c":3}}`:              `{"a":{"c":3}}`,
		`{"a":{"c":3,"b":"x"},"b":4}`:                `{"a":{"c":3},"b":4}`,
		`{"a":{"c":3,"b":"x","d":5}}`:                `{"a":{"c":3,"d":5}}`,
		` { "x" : "{" , "a" : { "b" : 1 , "c":2 } }`: ` { "x" : "{" , "a" : { "c":2 } }`,
		`{ "a": { "c": 2 , "b": 1 } }`:               `{ "a": { "c": 2  } }`,
		`{"b":1,"a":{"c":{"b":1}}}`:                  `{"b":1,"a":{"c":{"b":1}}}`,
		`{"a":[{"b":1}]}`:                            `{"a":[{"b":1}]}`,
		`{}`:                                         `{}`,
		`[]`:                                         `[]`,
		``:                                           ``,
		`{"a":{"b":`:                                 `{"a":{"b":`,
	} {
		if got := string(jsontext.AppendWithout(nil, []byte(text), "a", "b")); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
