package jsonpath_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
)

const certificate = `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"annotations":{"example.io/owner":"payments","example.io/ticket":"OPS-4711"},"creationTimestamp":"2026-03-04T10:11:12Z","generation":3,"labels":{"app.kubernetes.io/name":"checkout","app.kubernetes.io/part-of":"edge","example.io/team":"payments"},"managedFields":[{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:example.io/owner":{},"f:example.io/ticket":{}},"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:app.kubernetes.io/part-of":{},"f:example.io/team":{}}},"f:spec":{".":{},"f:dnsNames":{},"f:duration":{},"f:issuerRef":{".":{},"f:group":{},"f:kind":{},"f:name":{}},"f:renewBefore":{},"f:secretName":{}}},"manager":"kubectl-client-side-apply","operation":"Update","time":"2026-03-04T10:11:12Z"},{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:notAfter":{},"f:notBefore":{},"f:renewalTime":{},"f:revision":{}}},"manager":"cert-manager-certificates-readiness","operation":"Update","subresource":"status","time":"2026-03-04T10:12:00Z"}],"name":"checkout-tls","namespace":"prod","resourceVersion":"918273645","uid":"0c6f3f1e-6a55-4c1b-9d0e-5f1a2b3c4d5e"},"spec":{"dnsNames":["checkout.example.com","pay.example.com","www.pay.example.com"],"duration":"2160h0m0s","issuerRef":{"group":"cert-manager.io","kind":"ClusterIssuer","name":"letsencrypt-prod"},"renewBefore":"360h0m0s","secretName":"checkout-tls"},"status":{"conditions":[{"lastTransitionTime":"2026-03-04T10:11:15Z","message":"Issuing certificate as Secret does not exist","reason":"DoesNotExist","status":"False","type":"Issuing"},{"lastTransitionTime":"2026-03-04T10:12:00Z","message":"Certificate is up to date and has not expired","observedGeneration":3,"reason":"Ready","status":"True","type":"Ready"}],"notAfter":"2026-06-02T10:11:59Z","notBefore":"2026-03-04T10:12:00Z","renewalTime":"2026-05-18T10:11:59Z","revision":1}}`

func decoded(tb testing.TB, raw string) map[string]any {
	tb.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(raw), &m); err != nil {
		tb.Fatal(err)
	}
	return m
}

const (
	fieldPath  = ".spec.issuerRef.name"
	filterPath = `.status.conditions[?(@.type=="Ready")].status`
	listPath   = ".spec.dnsNames[*]"
)

var eightPaths = []string{
	".metadata.namespace", ".metadata.name", fieldPath, listPath, ".status.notAfter",
	`.metadata.labels.example\.io/team`, ".spec.secretName", filterPath,
}
