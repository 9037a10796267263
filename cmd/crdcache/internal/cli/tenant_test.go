package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/serving/readapi"
)

const roomCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: rooms.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: rooms, singular: room, kind: Room}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Floor, type: integer, jsonPath: .spec.floor}]
    selectableFields: [{jsonPath: .spec.owner}]
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {floor: {type: integer}, owner: {type: string}}}}}}
status:
  acceptedNames: {plural: rooms, singular: room, kind: Room}
  conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]
`

// roomDocument is the type's OpenAPI document of a kube-apiserver.
const roomDocument = `{"openapi":"3.0.0","components":{"schemas":{
"com.example.v1.RoomList":{"type":"object","x-kubernetes-group-version-kind":[{"group":"example.com","kind":"RoomList","version":"v1"}]},
"com.example.v1.Room":{"type":"object","properties":{
	"apiVersion":{"type":"string"},"kind":{"type":"string"},
	"metadata":{"allOf":[{"$ref":"#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}],"default":{}},
	"spec":{"type":"object","properties":{"floor":{"type":"integer"},"owner":{"type":"string"}}}},
	"x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Room","version":"v1"}],
	"x-kubernetes-selectable-fields":[{"fieldPath":"spec.owner"}]}}}}`

// newTenantServer serves rooms. If isRestricted is set, it denies requests for their CRD.
func newTenantServer(t *testing.T, isRestricted bool) *httptest.Server {
	t.Helper()
	return newGuardedServer(t, func(r *http.Request) bool {
		return !isRestricted || !strings.HasPrefix(r.URL.Path, "/apis/apiextensions.k8s.io/v1/")
	})
}

// newGuardedServer serves rooms and allows only some requests.
func newGuardedServer(t *testing.T, allowed func(*http.Request) bool) *httptest.Server {
	t.Helper()
	storage := apiserver.NewStorage(apiserver.StorageOptions{})
	for _, text := range []string{roomCRD,
		"{apiVersion: example.com/v1, kind: Room, metadata: {name: hall, namespace: web}, spec: {floor: 7, owner: eve}}"} {
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		if _, err := storage.Apply(&object); err != nil {
			t.Fatal(err)
		}
	}
	handler := readapi.NewHandler(storage, readapi.HandlerOptions{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowed(r) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write(
				[]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"eve may not","reason":"Forbidden","code":403}`))
			return
		}
		if r.URL.Path == "/openapi/v3/apis/example.com/v1" {
			_, _ = w.Write([]byte(roomDocument))
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server
}

// TestTenant compares the output with and without permission to read CRDs.
func TestTenant(t *testing.T) {
	for name, tenant := range map[string]bool{"tenant": true, "owner": false} {
		t.Run(name, func(t *testing.T) {
			server := newTenantServer(t, tenant)
			crdcacheSilently(t, "dump", "rooms", "-n", "web", "-s", server.URL).expect(t, cli.ExitOK,
				"NAME   FLOOR\nhall   7\n")
			crdcacheSilently(t, "query", "rooms", "-n", "web", "--where", "@.spec.floor == 7", "-s",
				server.URL).expect(t, cli.ExitOK, "NAME   FLOOR\nhall   7\n")
			r := crdcache(t, "query", "rooms", "-n", "web", "--where", "@.spec.flor == 7", "-s", server.URL)
			if r.code != cli.ExitOK || !strings.Contains(r.errOut, "did you mean .spec.floor?") {
				t.Errorf("exit code %d, want %d; stderr %q", r.code, cli.ExitOK, r.errOut)
			}
			r = crdcacheSilently(t, "suggest", "rooms", "-n", "web", "-s", server.URL)
			if r.code != cli.ExitOK || !strings.Contains(r.out, ".spec.floor") ||
				!strings.Contains(r.out, ".spec.owner") {
				t.Errorf("exit code %d, want %d; stdout:\n%s", r.code, cli.ExitOK, r.out)
			}
		})
	}
}

// TestSuggestAll verifies that wildcards and completion skip types without a CRD, such as
// customresourcedefinitions.
func TestSuggestAll(t *testing.T) {
	server := newTenantServer(t, false)
	r := crdcacheSilently(t, "suggest", "*", "-s", server.URL)
	if r.code != cli.ExitOK || !strings.Contains(r.out, "resource: rooms") ||
		strings.Contains(r.out, "customresourcedefinitions") {
		t.Errorf("exit code %d, want %d; stdout:\n%s", r.code, cli.ExitOK, r.out)
	}
	r = crdcache(t, "suggest", "customresourcedefinitions", "-s", server.URL)
	if r.code != cli.ExitFailed || !strings.Contains(r.errOut, "no CRD defines this type") {
		t.Errorf("exit code %d, want %d; stderr %q", r.code, cli.ExitFailed, r.errOut)
	}
}

// crdcacheSilently runs a command line that must not write to stderr.
func crdcacheSilently(t *testing.T, args ...string) result {
	t.Helper()
	r := crdcache(t, args...)
	if r.errOut != "" {
		t.Errorf("%q wrote to stderr:\n%s", args, r.errOut)
	}
	return r
}
