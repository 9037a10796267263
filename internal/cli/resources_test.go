package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/cli/exit"
)

// TestResources: types are listed with their state, and the indexes that a config has for them.
func TestResources(t *testing.T) {
	server := newCluster(t)
	config := write(t, "c.yaml", `{apiVersion: crdcache.dev/v1alpha1, kind: IndexConfig, metadata: {name: a}, spec: {resources: [
		{name: g, match: {group: example.com, resource: gizmos}, indexes: [{name: color, path: .spec.color}, {name: size, path: .spec.size}]},
		{name: z, match: {group: example.com, kind: Zone}, indexes: [{name: x, path: .spec.x}]}]}}`)
	r := crdcache(t, "resources", "things", "--config", config, "-s", server.URL)
	r.expect(t, exit.OK, ""+
		"NAME                 KIND    SCOPE        VERSIONS   STATE    INDEXES\n"+
		"gizmos.example.com   Gizmo   Namespaced   v1         Served   g/color,g/size\n"+
		"zones.example.com    Zone    Cluster      v1         Served   z/x\n")
	crdcache(t, "resources", "gz", "--no-headers", "-o", "wide", "-s", server.URL).expect(t, exit.OK,
		"gizmos.example.com   Gizmo   Namespaced   v1    Served   gz    things   CustomResourceDefinition\n")
	crdcache(t, "resources", "*.example.com", "-o", "name", "-s", server.URL).expect(t, exit.OK, "gizmos.example.com\nzones.example.com\n")

	r = crdcache(t, "resources", "zones", "nope", "-o", "json", "-s", server.URL)
	var records []struct{ Name, Scope, State string }
	if err := json.Unmarshal([]byte(r.out), &records); err != nil {
		t.Fatalf("%v in %q", err, r.out)
	}
	if r.code != exit.Failed || len(records) != 1 || records[0].Name != "zones.example.com" || records[0].Scope != "Cluster" {
		t.Errorf("exit code %d, %+v", r.code, records)
	}
	if !strings.Contains(r.errOut, "nope") {
		t.Errorf("stderr is %q", r.errOut)
	}
}

// TestVersion: the build is told without a server, and the server's version on request.
func TestVersion(t *testing.T) {
	r := crdcache(t, "version")
	if r.code != exit.OK || !strings.HasPrefix(r.out, "crdcache: ") || strings.Count(r.out, "\n") != 1 {
		t.Errorf("exit code %d, stdout %q", r.code, r.out)
	}
	r = crdcache(t, "version", "-o", "json")
	var info struct{ Version, Go string }
	if err := json.Unmarshal([]byte(r.out), &info); err != nil || info.Version == "" || info.Go == "" {
		t.Errorf("%v in %q", err, r.out)
	}
	server := newCluster(t)
	server.Close()
	crdcache(t, "version", "--live", "-s", server.URL).expect(t, exit.Failed, "")
	crdcache(t, "version", "x").expect(t, exit.Usage, "")
}
