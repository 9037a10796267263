package packed_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/internal/packed"
)

func testPackers(t testing.TB) map[string]*packed.Packer {
	t.Helper()
	all := map[string]*packed.Packer{"nothing": packed.NewPacker(nil)}
	for name, prune := range map[string]packed.Prune{
		"presets":     {ManagedFields: true, LastApplied: true},
		"annotations": {Paths: []packed.Path{{{Key: "metadata"}, {Key: "annotations"}}}},
		"paths": {ManagedFields: true, Annotations: []string{"a", "b"}, Paths: []packed.Path{
			{{Key: "a"}}, {{Key: "spec"}, {Key: "a"}}, {{Key: "spec"}, {Key: "b"}, {Each: true},
				{Key: "a"}}, {{Key: "status"}, {Key: "conditions"}, {Each: true}, {Key: "message"}},
			{{Key: "metadata"}, {Key: "labels"}, {Key: "a"}}, {{Key: "x"}, {Each: true},
				{Each: true}, {Key: "a"}},
		}},
		"labels": {Paths: []packed.Path{{{Key: "metadata"}, {Key: "labels"}}, {{Key: "spec"}}}},
	} {
		pruner, err := packed.NewPruner(prune)
		must(t, err)
		all[name] = packed.NewPacker(pruner)
	}
	all["keep-list"] = keepPacker(t)
	return all
}

// seeds are values for which JSON decoders differ, and other edge cases.
var seeds = []string{
	`null`, `true`, `false`, `tru`, `nulll`, `{}`, `[]`, `[[],{}]`, `{"a":{}}`, `[1,]`, `[,1]`, `{"a":1,}`,
	`{,}`, `{"a"}`, `{a:1}`,
	`{"a":1,"a":2}`, `{"a":{"b":1},"a":{"c":2}}`, `{"a":1,"A":2}`, `{"\u0061":1,"a":2}`, `{"":0}`,
	`{"a":1 "b":2}`, `[1 2]`, `{]`, `[}`,
	`0`, `-0`, `-`, `+1`, `01`, `-01`, `1.`, `.5`, `1.0`, `-1.5`, `0e0`, `1e3`, `1E+3`, `1e`, `1e+`, `1e400`,
	`-1e400`, `1e-400`, `0x10`, `NaN`,
	`9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`, `1e21`,
	`123456789012345678901234567890`, `0.1`, `1.7976931348623157e308`, `5e-324`,
	`""`, `"a"`, `"\"\\\/\b\f\n\r\t"`, `"\'"`, `"\x41"`, `"\u00e9"`, `"\u00g9"`, `"\u12"`, `"\uD83D\uDE00"`,
	`"\uD83D"`, `"\uDE00"`, `"\u0000"`, `"é日本😀"`, "\"\xff\"", "\"a\xe2\x82\"",
	"\"12345678\x01\"", "\"a\nb\"", "\"a\x7fb\"", `"unterminated`, `"ends with \`, `'a'`, "\v1", "1\x00",
	`//c`, "[1,\n2]", ` [ 1 , { "a" : 2 } ] `,
	strings.Repeat("[", 70) + strings.Repeat("]", 70), strings.Repeat("[", 64) + strings.Repeat(`{"a":`, 65) +
		"1" + strings.Repeat("}", 65) + strings.Repeat("]", 64),
	strings.Repeat("1", 400), `[[{"a":1,"b":2},{"b":2,"a":1},{"a":1}],{"a":1}]`,
}

// documents are objects with edge cases in the fields that the scanner reads.
func documents() []string {
	all := unusualDocuments()
	for _, seed := range seeds {
		for _, place := range []string{
			`%`, `{"apiVersion":"v1","kind":"K","x":%,"y":[%]}`, `{"apiVersion":%,"kind":"K"}`,
			`{"apiVersion":"v1","kind":%}`, `{"apiVersion":"v1","kind":"K","metadata":%}`,
			`{"apiVersion":"v1","kind":"K","metadata":{"managedFields":[%],"name":%,"namespace":%,"uid":%,"resourceVersion":%}}`,
			`{"apiVersion":"v1","kind":"K","metadata":{"labels":%,"annotations":%}}`,
			`{"apiVersion":"v1","kind":"K","metadata":{"labels":{"a":%,"b":"c"},"annotations":{"x":1,"a":%}}}`,
			`{"a":%,"apiVersion":"v1","kind":"K","spec":{"a":%,"b":%},"status":{"conditions":%}}`,
			`{%:1,"apiVersion":"v1","kind":"K","metadata":{%:%,"labels":{%:"x"}},"spec":{%:2}}`,
		} {
			all = append(all, strings.ReplaceAll(place, "%", seed))
		}
	}
	return all
}

// unusualDocuments are the documents that are not generated from seeds.
func unusualDocuments() []string {
	return []string{
		string(certificate(1)), `{}`, `null`, `[]`, `1`, ``, ` `, `{"kind":"K"}`, `{"apiVersion":"v1"}`,
		`{"apiVersion":"v1","kind":"K"} x`, `{"apiVersion":"v1","kind":"K"}` + "\n",
		`{"apiVersion":"v1","kind":""}`, `{"apiVersion":"","kind":"K"}`, `{"apiVersion":"a/b/c","kind":"K"}`,
		`{"apiVersion":"a/","kind":"K"}`, `{"apiVersion":"/v1","kind":"K"}`,
		`{"apiVersion":1,"kind":"K"}`, `{"apiVersion":null,"kind":"K"}`, `{"apiVersion":"v1","kind":{}}`,
		`{"apiVersion":"v1","kind":null}`, `{"Kind":"K","APIVersion":"v1"}`,
		`{"apiVersion":"v1","kind":"K","kind":"L"}`, `{"apiVersion":"v1","kind":"K","\u006bind":"L"}`,
		`{"apiVersion":"v1","kind":"\u004b"}`, `{"apiVersion":"v\u0031","kind":"é"}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"name":"a"},"metadata":{"name":"b"}}`,
		`{"apiVersion":"v1","kind":"K","Metadata":{"name":"a"},"metadata":{"Name":"b"}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"name":"a","name":"b","namespace":"x","uid":"1","uid":2,"resourceVersion":"5","labels":{"a":"b"},"labels":{"c":"d"}}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"name":"a","labels":{"a":"b"},"labels":null,"annotations":{"a":"1","b":"2"},"annotations":{"c":"3"}}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"managedFields":1,"managedFields":[],"name":"a"}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"name":"a","managedFields":1,"managedFields":[]}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"managedFields":[{}]}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"\u006danagedFields":[{}],"x":1}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"managedFields":[] , "x" : 1 , "managedFields":[] } }`,
		` { "managedFields":[] , "metadata" : { } , "apiVersion" : "v1" , "kind" : "K" } `,
		`{"a":1,"apiVersion":"v1","kind":"K","spec":{"a":1,"b":[{"a":1},{"a":1,"c":2},{"c":2,"a":1},{"c":1,"a":2,"d":3},5,null,[]]},"x":[[{"a":1}],[{"b":1}]]}`,
		`{"apiVersion":"v1","a":1,"kind":"K","spec":{"b":{"a":1},"a":[]},"x":[[{"a":1,"\u0061":2,"a":3}],{}]}`, `{"apiVersion":"v1","kind":"K","a":1}`, `{"spec":{},"apiVersion":"v1","kind":"K","a":1}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"labels":{"a":null,"b":"c"}}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"labels":{"a":null,"b":"null"}}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"labels":{ "a" : "b" , "c" : "d" }}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"labels":{"a":"x","a":"y","b":1,"b":"z"}}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"12"}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"annotations":{"a":"1","k8s.io/initial-events-end":"true","b":"2"},"resourceVersion":"12"}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"name":"` + strings.Repeat("n", 70_000) +
			`","namespace":"` + strings.Repeat("s", 70_000) + `","uid":"` + strings.Repeat("u",
			70_000) + `"}}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"name":"x/y","namespace":"a/b"}}`,
		`{"apiVersion":"v1","kind":"KList","items":[{}],"metadata":{"name":"a"}}`,
		`{"apiVersion":"v1","kind":"K","x":` + strings.Repeat("[", 6000) + strings.Repeat("]", 6000) +
			`}`, `{"apiVersion":"v1","kind":"K","x":` + strings.Repeat("[", 20_000) +
			strings.Repeat("]", 20_000) + `}`,
		`{"apiVersion":"v1","kind":"K","metadata":{"managedFields":` + strings.Repeat("[", 4998) +
			strings.Repeat("]", 4998) + `}}`,
	}
}

func TestPackAgrees(t *testing.T) {
	for name, packer := range testPackers(t) {
		t.Run(name, func(t *testing.T) {
			for _, document := range documents() {
				compareWithUnstructured(t, packer, []byte(document))
			}
		})
	}
}

func FuzzPackAgrees(f *testing.F) {
	for _, document := range unusualDocuments() {
		if len(document) < 10_000 {
			f.Add([]byte(document))
		}
	}
	all := testPackers(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		// unstructured.UnmarshalJSON, the reference implementation, takes minutes for deeply nested JSON.
		if strings.Count(string(data), "[")+strings.Count(string(data), "{") > 2000 {
			return
		}
		for _, packer := range all {
			compareWithUnstructured(t, packer, data)
		}
	})
}

// readManifests returns the objects of the repository's test data as JSON: definitions, and objects of many
// kinds.
func readManifests(t testing.TB) [][]byte {
	t.Helper()
	var all [][]byte
	for _, pattern := range []string{"../../testdata/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no manifests: %v", err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			must(t, err)
			for document := range bytes.SplitSeq(text, []byte("\n---")) {
				converted, err := yaml.YAMLToJSON(document)
				if err != nil {
					t.Fatalf("YAMLToJSON of %s: %v", file, err)
				}
				all = append(all, converted)
			}
		}
	}
	return all
}

// TestPackTruncated packs every prefix and every suffix of an object.
func TestPackTruncated(t *testing.T) {
	packer := testPackers(t)["paths"]
	document := certificate(1)
	for n := range document {
		compareWithUnstructured(t, packer, document[:n])
		compareWithUnstructured(t, packer, document[n:])
		if o, _, more := packer.TryNext(document[:n], 0); o != nil || !more {
			t.Fatalf("after %d bytes: packed %v, truncated %v", n, o != nil, more)
		}
	}
}

// TestPackDamaged verifies that Pack and unstructured.UnmarshalJSON agree about objects with changed bytes.
func TestPackDamaged(t *testing.T) {
	packers := testPackers(t)
	document := certificate(1)
	for n := 0; n < len(document); n += 5 {
		for _, c := range []byte("\"}0\xff") {
			damaged := bytes.Clone(document)
			damaged[n] = c
			compareWithUnstructured(t, packers["paths"], damaged)
		}
	}
}

// certificate is a custom resource of about 2 KB, almost half of it managed fields, as an API server sends
// it.
func certificate(n int) []byte {
	return fmt.Appendf(
		nil, `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"annotations":{"cert-manager.io/issue-temporary-certificate":"true","kubectl.kubernetes.io/last-applied-configuration":"{\"a\":%[1]d}\n"},"creationTimestamp":"2026-11-20T10:%02[3]d:00Z","generation":1,"labels":{"app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"app-%[2]d","env":"prod"},"managedFields":[{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:cert-manager.io/issue-temporary-certificate":{},"f:team":{}},"f:labels":{".":{},"f:app.kubernetes.io/managed-by":{},"f:app.kubernetes.io/name":{},"f:env":{}}},"f:spec":{".":{},"f:dnsNames":{},"f:issuerRef":{},"f:secretName":{}}},"manager":"helm","operation":"Update","time":"2026-11-20T10:%02[3]d:00Z"},{"apiVersion":"cert-manager.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:observedGeneration":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:notAfter":{},"f:notBefore":{},"f:renewalTime":{},"f:revision":{}}},"manager":"cert-manager-certificates-readiness","operation":"Update","subresource":"status","time":"2026-11-20T10:%02[3]d:05Z"}],"name":"certificate-%[1]d","namespace":"tenant-%[2]d","resourceVersion":"%[4]d","uid":"5f0c1c6e-7d21-4a8e-9d0b-%012[1]d"},"spec":{"dnsNames":["host-%[1]d.example.com","www.host-%[1]d.example.com"],"duration":"2160h0m0s","issuerRef":{"group":"cert-manager.io","kind":"ClusterIssuer","name":"letsencrypt"},"privateKey":{"algorithm":"ECDSA","rotationPolicy":"Always","size":256},"renewBefore":"360h0m0s","secretName":"tls-%[1]d","usages":["digital signature","key encipherment"]},"status":{"conditions":[{"lastTransitionTime":"2026-11-20T10:%02[3]d:05Z","message":"Certificate is up to date and has not expired","observedGeneration":1,"reason":"Ready","status":"True","type":"Ready"}],"notAfter":"2027-02-18T10:%02[3]d:04Z","notBefore":"2026-11-20T10:%02[3]d:04Z","renewalTime":"2027-02-03T10:%02[3]d:04Z","revision":1}}`,
		n, n%50, n%60, 1_000_000+n)
}

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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
	must(t, err)
	expectEqual(t, want, repacked)
}

// expectEqual fails the test unless both objects have the same content.
func expectEqual(t *testing.T, want *unstructured.Unstructured, got *packed.Object) {
	t.Helper()
	decoded, err := got.Decode()
	must(t, err)
	if !reflect.DeepEqual(want.Object, decoded.Object) { // cmp takes minutes for deep nesting
		t.Fatalf("decoded: (-want +got)\n%s", cmp.Diff(want.Object, decoded.Object))
	}
	key, err := cache.MetaNamespaceKeyFunc(want)
	must(t, err)
	if got.Key() != key {
		t.Fatalf("got the key %q, want %q", got.Key(), key)
	}
	accessor, err := meta.Accessor(got)
	must(t, err)
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
