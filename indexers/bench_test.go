package indexers_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	kjson "k8s.io/apimachinery/pkg/util/json"
)

// benchmarkIndexes are typical indexes of one type.
var benchmarkIndexes = []string{
	"{name: ns, path: .metadata.namespace}",
	"{name: issuer, path: .spec.issuerRef.name}",
	"{name: dns, path: '.spec.dnsNames[*]'}",
	"{name: expiry, path: .status.notAfter, type: time, order: sorted}",
	"{name: team, label: example.io/team}",
	"{name: secret, path: .spec.secretName}",
	"{name: condition, each: '.status.conditions[*]', key: [{name: type, path: .type}, {name: status, path: .status}]}",
	"{name: not-ready, path: .metadata.name, when: '!(@.status.conditions[?(@.type==\"Ready\" && @.status==\"True\")])'}",
}

// certificate is an object of 2 KB, as an API server sends it.
const certificate = `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"annotations":{"example.io/owner":"payments","example.io/ticket":"OPS-4711"},"creationTimestamp":"2026-03-04T10:11:12Z","generation":3,"labels":{"app.kubernetes.io/name":"checkout","app.kubernetes.io/part-of":"edge","example.io/team":"payments"},"managedFields":[{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:example.io/owner":{},"f:example.io/ticket":{}},"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:app.kubernetes.io/part-of":{},"f:example.io/team":{}}},"f:spec":{".":{},"f:dnsNames":{},"f:duration":{},"f:issuerRef":{".":{},"f:group":{},"f:kind":{},"f:name":{}},"f:renewBefore":{},"f:secretName":{}}},"manager":"kubectl-client-side-apply","operation":"Update","time":"2026-03-04T10:11:12Z"},{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:notAfter":{},"f:notBefore":{},"f:renewalTime":{},"f:revision":{}}},"manager":"cert-manager-certificates-readiness","operation":"Update","subresource":"status","time":"2026-03-04T10:12:00Z"}],"name":"checkout-tls","namespace":"prod","resourceVersion":"918273645","uid":"0c6f3f1e-6a55-4c1b-9d0e-5f1a2b3c4d5e"},"spec":{"dnsNames":["checkout.example.com","pay.example.com","www.pay.example.com"],"duration":"2160h0m0s","issuerRef":{"group":"cert-manager.io","kind":"ClusterIssuer","name":"letsencrypt-prod"},"renewBefore":"360h0m0s","secretName":"checkout-tls"},"status":{"conditions":[{"lastTransitionTime":"2026-03-04T10:11:15Z","message":"Issuing certificate as Secret does not exist","reason":"DoesNotExist","status":"False","type":"Issuing"},{"lastTransitionTime":"2026-03-04T10:12:00Z","message":"Certificate is up to date and has not expired","observedGeneration":3,"reason":"Ready","status":"True","type":"Ready"}],"notAfter":"2026-06-02T10:11:59Z","notBefore":"2026-03-04T10:12:00Z","renewalTime":"2026-05-18T10:11:59Z","revision":1}}`

// BenchmarkKeys computes the keys of eight indexes from the JSON, from the decoded object, and from the JSON
// by decoding it first.
func BenchmarkKeys(b *testing.B) {
	f := compileAll(b, benchmarkIndexes...)
	document := []byte(certificate)
	var object map[string]any
	if err := kjson.Unmarshal(document, &object); err != nil {
		b.Fatal(err)
	}
	b.Run("document", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(document)))
		keys := make([][]string, len(benchmarkIndexes))
		for b.Loop() {
			for i := range keys {
				keys[i] = keys[i][:0]
			}
			keys = f.KeysJSON(document, keys)
		}
	})
	b.Run("object", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f.Keys(object)
		}
	})
	b.Run("decoding", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(document)))
		for b.Loop() {
			var object map[string]any
			if err := kjson.Unmarshal(document, &object); err != nil {
				b.Fatal(err)
			}
			f.Keys(object)
		}
	})
}

// BenchmarkKeysOfAllForms computes the keys of indexes of all forms.
func BenchmarkKeysOfAllForms(b *testing.B) {
	f := compileAll(b, manyIndexes...)
	document, err := json.Marshal(randomObject(rand.New(rand.NewPCG(1, 9))))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		f.KeysJSON(document, nil)
	}
}
