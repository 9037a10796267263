package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

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
