package store

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
)

// certificateUID returns a random UID that depends on n only.
func certificateUID(n int) string {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.Uint32N(1<<16), r.Uint32N(1<<12),
		r.Uint32N(1<<12), r.Uint64N(1<<48))
}

// certificate is a custom resource of about 2 KB, almost half of it managed fields, as an API server sends
// it.
func certificate(n, version int) []byte {
	return fmt.Appendf(
		nil, `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"annotations":{"cert-manager.io/issue-temporary-certificate":"true","example.com/owner":"team-%[2]d@example.com","team":"team-%[2]d"},"creationTimestamp":"2026-11-20T10:%02[3]d:00Z","generation":1,"labels":{"app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"app-%[2]d","env":"prod"},"managedFields":[{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:cert-manager.io/issue-temporary-certificate":{},"f:team":{}},"f:labels":{".":{},"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},"f:env":{}}},"f:spec":{".":{},"f:dnsNames":{},"f:issuerRef":{},"f:secretName":{}}},"manager":"helm","operation":"Update","time":"2026-11-20T10:%02[3]d:00Z"},{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:notAfter":{},"f:notBefore":{},"f:renewalTime":{},"f:revision":{}}},"manager":"cert-manager-certificates-readiness","operation":"Update","subresource":"status","time":"2026-11-20T10:%02[3]d:05Z"}],"name":"certificate-%[1]d","namespace":"tenant-%[2]d","resourceVersion":"%[4]d","uid":"%[5]s"},"spec":{"dnsNames":["host-%[1]d.tenant-%[2]d.apps.example.com","www.host-%[1]d.tenant-%[2]d.apps.example.com"],"duration":"2160h0m0s","issuerRef":{"group":"cert-manager.io","kind":"ClusterIssuer","name":"letsencrypt"},"privateKey":{"algorithm":"ECDSA","rotationPolicy":"Always","size":256},"renewBefore":"360h0m0s","secretName":"tls-%[1]d","usages":["digital signature","key encipherment"]},"status":{"conditions":[{"lastTransitionTime":"2026-11-20T10:%02[3]d:05Z","message":"Certificate is up to date and has not expired","observedGeneration":1,"reason":"Ready","status":"True","type":"Ready"}],"notAfter":"2027-02-18T10:%02[3]d:04Z","notBefore":"2026-11-20T10:%02[3]d:04Z","renewalTime":"2027-02-03T10:%02[3]d:04Z","revision":1}}`,
		n, n%100, n%60, 1_000_000+version, certificateUID(n))
}

func managedFieldsPruner(t testing.TB) *packed.Pruner {
	t.Helper()
	pruner, err := packed.NewPruner(packed.Prune{ManagedFields: true})
	must(t, err)
	return pruner
}

// keyedCertificate returns a certificate as a reflector passes it to a store with that format.
func keyedCertificate(t testing.TB, format Format, n, version int) KeyedItem {
	t.Helper()
	o, err := format.Packer().Pack(certificate(n, version))
	must(t, err)
	key := strings.Clone(o.Key())
	return KeyedItem{Key: key, ResourceVersion: o.GetResourceVersion(), Item: format.Item(o)}
}

// replaceAll replaces the content of a store with certificates, and fails if Replace returns false.
func replaceAll(t testing.TB, s *Store, objects, version int) {
	t.Helper()
	if !tryReplaceAll(t, s, objects, version) {
		t.Fatal("Replace returned false")
	}
}

// tryReplaceAll is like replaceAll, but returns false if another writer was faster.
func tryReplaceAll(t testing.TB, s *Store, objects, version int) bool {
	t.Helper()
	all := make([]KeyedItem, objects)
	for n := range all {
		all[n] = keyedCertificate(t, s.format, n, version)
	}
	for k := range all {
		all[k].Item = s.format.Item(all[k].Item) // again, as in a relist, because compressors are now trained
	}
	_, ok := s.Replace(s.PrepareAll(all), fmt.Sprint(version))
	return ok
}

func byNamespace() cache.Indexers {
	return cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
}

func byUID(obj any) ([]string, error) {
	return []string{string(obj.(*unstructured.Unstructured).GetUID())}, nil
}

func byApp(obj any) ([]string, error) {
	return []string{obj.(*unstructured.Unstructured).GetLabels()["app.kubernetes.io/name"]}, nil
}

func decode(t testing.TB, item Item) *unstructured.Unstructured {
	t.Helper()
	u, err := item.(*packed.Object).Decode()
	must(t, err)
	return u
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
