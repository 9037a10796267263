package cli_test

import (
	"encoding/json"
	"fmt"
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

const (
	demoCRDs   = "../../../../testdata/crds"
	demoConfig = "../../../../testdata/indexes/platform.yaml"
)

// TestValidateLive compares with the cluster's schemas, and lists only the needed groups.
func TestValidateLive(t *testing.T) {
	server := newCluster(t)
	config := func(path string) string {
		return writeTempFile(t, "c.yaml", `{apiVersion: crdcache.dev/v1beta1, kind: IndexConfig, metadata: {name: a}, spec: {resources: [
			{name: gizmos, match: {group: example.com, version: v1, resource: gizmos}, indexes: [{name: x, path: `+path+`}]}]}}`)
	}
	// A definition without a schema is a warning.
	r := crdcache(t, "validate", config(".spec.color"), "--live", "-s", server.URL)
	r.expect(t, cli.ExitOK, "valid: 1 resource, 1 index; compared with the cluster's types\n")
	if !strings.HasPrefix(r.errOut, "warning: ") {
		t.Errorf("stderr is %q, want a warning", r.errOut)
	}
	// The message names the cluster, not files.
	absent := writeTempFile(t, "d.yaml", `{apiVersion: crdcache.dev/v1beta1, kind: IndexConfig, metadata: {name: a}, spec: {resources: [
		{name: a, match: {group: example.org, resource: lamps}, optional: true},
		{name: b, match: {group: "*.example.org", resource: "*"}, optional: true}]}}`)
	r = crdcache(t, "validate", absent, "--live", "-s", server.URL)
	r.expect(t, cli.ExitOK, "valid: 2 resources, 0 indexes; compared with the cluster's types\n")
	if !strings.Contains(r.errOut, "W304: lamps.example.org is not in the cluster;") ||
		!strings.Contains(r.errOut, "W304: no CRD of the cluster fits *.*.example.org;") {
		t.Errorf("stderr does not name the missing types:\n%s", r.errOut)
	}
	server.Close()
	r = crdcache(t, "validate", config(".spec.color"), "--live", "-s", server.URL)
	r.expect(t, cli.ExitFailed, "")
	if !strings.HasPrefix(r.errOut, "error: cannot reach the API server") {
		t.Errorf("stderr is %q, want that the server is unreachable", r.errOut)
	}
}

// TestValidateSeries estimates the series of metrics from a sample of all objects.
func TestValidateSeries(t *testing.T) {
	var objects strings.Builder
	for n := range 1200 {
		fmt.Fprintf(&objects, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"a","name":"c%d"}}`+"\n", n)
	}
	file := writeTempFile(t, "objects.jsonl", objects.String())
	config := func(limit, kind string) string {
		return writeTempFile(t, "c.yaml", `{apiVersion: crdcache.dev/v1beta1, kind: IndexConfig, metadata: {name: a}, spec: {resources: [
			{name: maps, match: {group: "", kind: `+kind+`}, metrics: [
				{name: maps, help: Maps., limit: `+limit+`, labels: [{name: name, path: .metadata.name}]}]}]}}`)
	}
	for name, tt := range map[string]struct{ limit, kind, want string }{
		"above the limit": {"1199", "ConfigMap",
			`W312: metric "maps" has about 1200 series for 1200 objects, more than its limit of 1199; label "name" has 1000 values`},
		"a type that files lack": {"1", "Secret", `the number of series of the metrics of "maps" is unknown: `},
		"at the limit":           {"1200", "ConfigMap", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := crdcache(t, "validate", config(tt.limit, tt.kind), "--live", "--from", file)
			r.expect(t, cli.ExitOK, "valid: 1 resource, 0 indexes; compared with the cluster's types\n")
			if !strings.Contains(r.errOut, tt.want) || (tt.want == "") != !strings.Contains(r.errOut, "series") {
				t.Errorf("stderr is %q, want %q", r.errOut, tt.want)
			}
		})
	}
}

// TestSuggest verifies that suggest prints a valid config with the columns of the CRD.
func TestSuggest(t *testing.T) {
	r := crdcache(t, "suggest", "workloads", "rt", "Release.demo.crdcache.dev", "--crds", demoCRDs)
	if r.code != cli.ExitOK || strings.Count(r.errOut, "suggests more indexes than the 12 printed ones") != strings.Count(r.errOut, "\n") {
		t.Fatalf("exit code %d, want %d; stderr %q", r.code, cli.ExitOK, r.errOut)
	}
	for _, want := range []string{"match: {group: demo.crdcache.dev, version: v1, resource: workloads}",
		"- name: slo\n", "path: .spec.environment\n", "resource: routes}", "- name: tls\n"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is missing in\n%s", want, r.out)
		}
	}
	if strings.Count(r.out, "path: .spec.environment\n") != 1 {
		t.Error("the path .spec.environment is not indexed once")
	}
	if v := crdcache(t, "validate", writeTempFile(t, "s.yaml", r.out), "--crds", demoCRDs); v.code != cli.ExitOK ||
		v.errOut != "" {
		t.Errorf("the suggested config is invalid:\n%s", v.errOut)
	}
}

// TestSuggestLive verifies that suggest reads the CRD from the cluster and reports types without a CRD.
func TestSuggestLive(t *testing.T) {
	server := newCluster(t)
	r := crdcache(t, "suggest", "gz", "zones", "-s", server.URL)
	if r.code != cli.ExitFailed || !strings.Contains(r.out, "path: .spec.color\n") ||
		!strings.Contains(r.out, "path: .spec.size\n") {
		t.Errorf("exit code %d, want %d; stdout\n%s", r.code, cli.ExitFailed, r.out)
	}
	if !strings.Contains(r.errOut, "zones") ||
		!strings.Contains(r.errOut, "cannot suggest indexes: no CRD defines this type") {
		t.Errorf("stderr is %q, want that zones has no CRD", r.errOut)
	}
}

// TestResources verifies that resources lists types with their state and indexes.
func TestResources(t *testing.T) {
	server := newCluster(t)
	config := writeTempFile(t, "c.yaml", `{apiVersion: crdcache.dev/v1beta1, kind: IndexConfig, metadata: {name: a}, spec: {resources: [
		{name: g, match: {group: example.com, resource: gizmos}, indexes: [{name: color, path: .spec.color}, {name: size, path: .spec.size}]},
		{name: z, match: {group: example.com, kind: Zone}, indexes: [{name: x, path: .spec.x}]}]}}`)
	r := crdcache(t, "resources", "things", "--config", config, "-s", server.URL)
	r.expect(t, cli.ExitOK, ""+
		"NAME                 KIND    SCOPE        VERSIONS   STATE    INDEXES\n"+
		"gizmos.example.com   Gizmo   Namespaced   v1         Served   g/color,g/size\n"+
		"zones.example.com    Zone    Cluster      v1         Served   z/x\n")
	crdcache(t, "resources", "gz", "--no-headers", "-o", "wide", "-s", server.URL).expect(t, cli.ExitOK,
		"gizmos.example.com   Gizmo   Namespaced   v1    Served   gz    things   CustomResourceDefinition\n")
	crdcache(t, "resources", "*.example.com", "-o", "name", "-s", server.URL).expect(t, cli.ExitOK,
		"gizmos.example.com\nzones.example.com\n")

	r = crdcache(t, "resources", "zones", "nope", "-o", "json", "-s", server.URL)
	var records []struct{ Name, Scope, State string }
	if err := json.Unmarshal([]byte(r.out), &records); err != nil {
		t.Fatalf("%v in %q", err, r.out)
	}
	if r.code != cli.ExitFailed || len(records) != 1 || records[0].Name != "zones.example.com" ||
		records[0].Scope != "Cluster" {
		t.Errorf("exit code %d, want %d; %+v", r.code, cli.ExitFailed, records)
	}
	if !strings.Contains(r.errOut, "nope") {
		t.Errorf("stderr is %q, want the unknown name", r.errOut)
	}
}

// TestResourcesNotServed verifies that resources finds unserved types by name and pattern.
func TestResourcesNotServed(t *testing.T) {
	server := newCluster(t)
	for name, served := range map[string]bool{"broken": true, "retired": false} {
		status := []any{map[string]any{"type": "NamesAccepted", "status": "False"}}
		if !served {
			status = []any{map[string]any{"type": "Established", "status": "True"}}
		}
		server.Create(t, crds, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": name + "s.example.com"},
			"spec": map[string]any{
				"group": "example.com", "scope": "Namespaced",
				"names": map[string]any{"plural": name + "s", "singular": name,
					"kind": strings.ToUpper(name)},
				"versions": []any{map[string]any{"name": "v1", "served": served, "storage": true}},
			},
			"status": map[string]any{"conditions": status},
		}})
	}
	for _, names := range [][]string{{"brokens", "retired.v1.example.com"}, {"*eds.example.com", "BROKEN"}} {
		crdcache(t, append([]string{"resources", "--no-headers", "-s", server.URL}, names...)...).expect(t,
			cli.ExitOK, ""+
				"brokens.example.com    BROKEN    Namespaced   v1     NotEstablished\n"+
				"retireds.example.com   RETIRED   Namespaced   (v1)   NotServed\n")
	}
	crdcache(t, "resources", "*.example.com", "-o", "name", "-s", server.URL).expect(t, cli.ExitOK,
		"brokens.example.com\ngizmos.example.com\nretireds.example.com\nzones.example.com\n")
	for name, want := range map[string]string{"brokens": "NamesAccepted is False", "broken.example.com": "NamesAccepted is False",
		"retireds": "it serves no such version", "zones,brokens": "NamesAccepted is False"} {
		r := crdcache(t, "dump", name, "-s", server.URL)
		if r.code != cli.ExitFailed || !strings.Contains(r.errOut, ".example.com exists: "+want) {
			t.Errorf("dump %s: exit code %d, want %d; stderr %q, want %q", name, r.code, cli.ExitFailed, r.errOut, want)
		}
	}
}

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
		must(t, yaml.Unmarshal([]byte(text), &object.Object))
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
