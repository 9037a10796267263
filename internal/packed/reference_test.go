package packed_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
)

// certificate is a custom resource of about 2 KB, almost half of it managed fields, as an API server sends
// it.
func certificate(n int) []byte {
	return fmt.Appendf(
		nil, `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"annotations":{"cert-manager.io/issue-temporary-certificate":"true","kubectl.kubernetes.io/last-applied-configuration":"{\"a\":%[1]d}\n"},"creationTimestamp":"2026-11-20T10:%02[3]d:00Z","generation":1,"labels":{"app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"app-%[2]d","env":"prod"},"managedFields":[{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:cert-manager.io/issue-temporary-certificate":{},"f:team":{}},"f:labels":{".":{},"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},"f:env":{}}},"f:spec":{".":{},"f:dnsNames":{},"f:issuerRef":{},"f:secretName":{}}},"manager":"helm","operation":"Update","time":"2026-11-20T10:%02[3]d:00Z"},{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:notAfter":{},"f:notBefore":{},"f:renewalTime":{},"f:revision":{}}},"manager":"cert-manager-certificates-readiness","operation":"Update","subresource":"status","time":"2026-11-20T10:%02[3]d:05Z"}],"name":"certificate-%[1]d","namespace":"tenant-%[2]d","resourceVersion":"%[4]d","uid":"5f0c1c6e-7d21-4a8e-9d0b-%012[1]d"},"spec":{"dnsNames":["host-%[1]d.example.com","www.host-%[1]d.example.com"],"duration":"2160h0m0s","issuerRef":{"group":"cert-manager.io","kind":"ClusterIssuer","name":"letsencrypt"},"privateKey":{"algorithm":"ECDSA","rotationPolicy":"Always","size":256},"renewBefore":"360h0m0s","secretName":"tls-%[1]d","usages":["digital signature","key encipherment"]},"status":{"conditions":[{"lastTransitionTime":"2026-11-20T10:%02[3]d:05Z","message":"Certificate is up to date and has not expired","observedGeneration":1,"reason":"Ready","status":"True","type":"Ready"}],"notAfter":"2027-02-18T10:%02[3]d:04Z","notBefore":"2026-11-20T10:%02[3]d:04Z","renewalTime":"2027-02-03T10:%02[3]d:04Z","revision":1}}`,
		n, n%50, n%60, 1_000_000+n)
}

// compareWithUnstructured fails the test unless Packer p and apimachinery decode data to the same object, or
// both reject it.
func compareWithUnstructured(t *testing.T, p *packed.Packer, data []byte) {
	t.Helper()
	want := &unstructured.Unstructured{}
	wantErr := want.UnmarshalJSON(data)
	got, err := p.Pack(data)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%.300q: got the error %v, want %v", data, err, wantErr)
	}
	if err != nil {
		if p.TryPack(data) != nil {
			t.Fatalf("%.300q: TryPack accepts data that Pack rejects", data)
		}
		return
	}
	p.Pruner().Apply(want)
	expectEqual(t, want, got)
	repacked, err := (*packed.Packer)(nil).FromUnstructured(got.Unstructured())
	if err != nil {
		t.Fatal(err)
	}
	expectEqual(t, want, repacked)
}

// expectEqual fails the test unless both objects have the same content.
func expectEqual(t *testing.T, want *unstructured.Unstructured, got *packed.Object) {
	t.Helper()
	decoded, err := got.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(want.Object, decoded.Object) { // cmp takes minutes for deep nesting
		t.Fatalf("decoded: (-want +got)\n%s", cmp.Diff(want.Object, decoded.Object))
	}
	key, err := cache.MetaNamespaceKeyFunc(want)
	if err != nil {
		t.Fatal(err)
	}
	if got.Key() != key {
		t.Fatalf("got the key %q, want %q", got.Key(), key)
	}
	accessor, err := meta.Accessor(got)
	if err != nil {
		t.Fatal(err)
	}
	expectEqualMetadata(t, want, accessor)
	if got.GroupVersionKind() != want.GroupVersionKind() {
		t.Fatalf("got the kind %v, want %v", got.GroupVersionKind(), want.GroupVersionKind())
	}
	for label, value := range want.GetLabels() {
		if v, ok := got.Labels().Lookup(label); !ok || v != value {
			t.Fatalf("got the label %q: %q, %v, want %q", label, v, ok, value)
		}
	}
	if got.Labels().Has("no such label") {
		t.Fatal("Has() = true for a missing label")
	}
}

// expectEqualMetadata fails the test unless the getters of both objects return equal values.
func expectEqualMetadata(t *testing.T, want, got metav1.Object) {
	t.Helper()
	// cmp does not know metav1.FieldsV1.
	if w, g := summarizeMetadata(want), summarizeMetadata(got); !reflect.DeepEqual(w, g) {
		t.Fatalf("metadata: got %+v, want %+v", g, w)
	}
}

// summarizeMetadata returns the results of the getters.
func summarizeMetadata(m metav1.Object) map[string]any {
	return map[string]any{
		"name": m.GetName(), "namespace": m.GetNamespace(), "uid": m.GetUID(),
		"resourceVersion": m.GetResourceVersion(),
		"labels":          m.GetLabels(), "annotations": m.GetAnnotations(), "generation": m.GetGeneration(),
		"generateName": m.GetGenerateName(),
		"creation":     m.GetCreationTimestamp(), "deletion": m.GetDeletionTimestamp(),
		"grace":      m.GetDeletionGracePeriodSeconds(),
		"finalizers": m.GetFinalizers(), "owners": m.GetOwnerReferences(), "selfLink": m.GetSelfLink(),
		"managedFields": m.GetManagedFields(),
	}
}
