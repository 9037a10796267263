package web

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const routesID = "routes.demo.crdcache.dev/v1"

var events = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// loadEvent adds an Event of an object.
func (f *fixture) loadEvent(kind, namespace, name, reason string) {
	f.load(map[string]any{
		"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": reason, "message": "because", "count": int64(3),
		"metadata":       map[string]any{"name": name + "." + strings.ToLower(reason), "namespace": namespace},
		"involvedObject": map[string]any{"kind": kind, "namespace": namespace, "name": name},
		"lastTimestamp":  "2026-11-01T10:00:00Z", "source": map[string]any{"component": "demo-controller"},
	})
}

// cacheEvents adds the type of Events to the cache.
func (f *fixture) cacheEvents() {
	f.t.Helper()
	informer, err := f.factory.ForResource(events)
	must(f.t, err)
	must(f.t, f.factory.Start(f.t.Context()))
	eventually(f.t, func() bool { return informer.HasSynced() })
}

func TestSearch(t *testing.T) {
	s := newFixture(t, Options{})
	tests := map[string]struct {
		text, namespace string
		want            []string // in the response
		unwanted        string
	}{
		"a name":          {"LEDGER", "", []string{`{"type":"` + workloadsID + `","key":"payments/ledger"}`}, ""},
		"two words":       {"pay led", "", []string{`"key":"payments/ledger"`}, "storefront"},
		"an index":        {"production-e", "", []string{`"index":"environment","text":"production-eu"`, `"query":"environment=production-eu"`}, ""},
		"a field":         {"9007199254740993", "", []string{`"path":".spec.artifactBytes","text":"9007199254740993"`}, ""},
		"a text":          {"RUNBOOKS.example.com/led", "", []string{`runbook.url\"]`}, ""},
		"one namespace":   {"search", "media", []string{`"media/search"`}, "storefront"},
		"nothing":         {"no such text", "", []string{`"names":[]`, `"values":[]`, `"contents":[]`}, ""},
		"a hidden value":  {encodedPassword, "", []string{`"contents":[]`}, "vault"},
		"a hidden object": {"vault", "", []string{`"default/vault"`}, encodedPassword},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := s.get(pageURL("search", "text", tt.text, "namespace", tt.namespace, "all", "1"), http.StatusOK)
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("response without %s: %s", want, got)
				}
			}
			if tt.unwanted != "" && strings.Contains(got, tt.unwanted) {
				t.Errorf("response with %s: %s", tt.unwanted, got)
			}
		})
	}
	if got := getJSON[searchAnswer](s, "search", "text", "ledger", "all", "1"); got.Names[0].Key != "payments/ledger" ||
		got.Searched != got.Objects {
		t.Errorf("search for ledger: %+v, want the equal name first, and all objects searched", got)
	}
	s.get(pageURL("search", "text", " "), http.StatusBadRequest)
	s.get(pageURL("search", "text", strings.Repeat("a", 121)), http.StatusBadRequest)
}

func TestHealth(t *testing.T) {
	s := newFixture(t, Options{})
	byType := func(namespace string) map[string]typeHealth {
		t.Helper()
		allNamespaces := map[string]typeHealth{}
		for _, each := range getJSON[healthAnswer](s, "health", "namespace", namespace).Types {
			allNamespaces[each.Type] = each
		}
		return allNamespaces
	}
	allNamespaces, payments := byType(""), byType("payments")
	table := getJSON[tableAnswer](s, "table", "type", workloadsID)
	if got := allNamespaces[workloadsID]; got.Objects != table.Total || len(got.Conditions) == 0 {
		t.Errorf("the health of workloads is %+v, want %d objects with conditions", got, table.Total)
	}
	for _, c := range allNamespaces[workloadsID].Conditions {
		if c.Query == "" {
			continue
		}
		if found := getJSON[tableAnswer](s, "table", "type", workloadsID, "query", c.Query); found.Total != c.Bad {
			t.Errorf("%s is %s for %d objects, want %d", c.Type, c.BadStatus, c.Bad, found.Total)
		}
	}
	if payments[workloadsID].Objects != 5 || payments["environments.demo.crdcache.dev/v1"].Objects != 0 {
		t.Errorf("objects in payments: %+v, want 5 workloads and no environments", payments)
	}
	bytes := func(namespace string) int {
		for _, each := range getJSON[healthAnswer](s, "health").Namespaces {
			if each.Name == namespace {
				return each.Bytes
			}
		}
		return 0
	}
	beforeBytes := bytes("payments")
	before := allNamespaces[workloadsID].Conditions
	s.load(map[string]any{"apiVersion": "demo.crdcache.dev/v1", "kind": "Workload",
		"metadata": map[string]any{"name": "new", "namespace": "payments"},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False"}}}})
	eventually(t, func() bool { return cmp.Diff(before, byType("")[workloadsID].Conditions) != "" })
	if grown := bytes("payments") - beforeBytes; grown < 200 || grown > 1000 {
		t.Errorf("an object adds %d bytes to its namespace, want 200 to 1000", grown)
	}
}

func TestExport(t *testing.T) {
	s := newFixture(t, Options{})
	s.load(map[string]any{"apiVersion": "demo.crdcache.dev/v1", "kind": "Workload",
		"metadata": map[string]any{"name": "formula", "namespace": "payments"},
		"spec":     map[string]any{"environment": `=cmd|'"`, "replicas": int64(-3)}})
	address := pageURL("export", "type", workloadsID, "query", "namespace=payments", "sort", "name", "format", "csv") +
		"&column=0&column=2"
	var got [][]string
	eventually(t, func() bool {
		var err error
		got, err = csv.NewReader(strings.NewReader(s.get(address, http.StatusOK))).ReadAll()
		return err == nil && len(got) == 7
	})
	if diff := cmp.Diff([]string{"Namespace", "Name", "Environment", "Replicas"}, got[0]); diff != "" {
		t.Errorf("the head (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"payments", "formula", `'=cmd|'"`, "-3"}, got[2]); diff != "" {
		t.Errorf("the row (-want +got):\n%s", diff)
	}
	yaml := s.get(strings.Replace(address, "csv", "yaml", 1), http.StatusOK)
	if strings.Count(yaml, "---\n") != 6 || !strings.Contains(yaml, "  artifactBytes: 9007199254740993\n") {
		t.Errorf("the export in YAML is %s, want 6 documents with exact numbers", yaml)
	}
	s.get(strings.Replace(address, "csv", "exe", 1), http.StatusBadRequest)
	s.get(strings.Replace(address, "column=2", "column=99", 1), http.StatusBadRequest)
}

// TestVisibilityOfAllTypes verifies that answers about all types cover only objects that the user can see.
func TestVisibilityOfAllTypes(t *testing.T) {
	s := newFixture(t, Options{Visible: func(r *http.Request,
		types []schema.GroupVersionResource) ([]Scope, error) {
		scopes, err := tenantScopes(r, types)
		for i, gvr := range types {
			if gvr == events && r.Header.Get("Cookie") != "" {
				scopes[i] = Scope{Namespaces: []string{"payments"}}
			}
		}
		return scopes, err
	}})
	s.loadEvent("Workload", "payments", "ledger", "Own")
	s.loadEvent("Workload", "edge", "dns", "Foreign")
	s.loadEvent("Environment", "default", "production-eu", "Foreign")
	s.cacheEvents()
	for _, path := range []string{pageURL("health"), pageURL("health", "namespace", "edge"),
		pageURL("search", "text", "e", "all", "1"), pageURL("search", "text", "dns", "all", "1"),
		pageURL("search", "text", "shop", "all", "1"), pageURL("search", "text", "edge", "namespace", "edge", "all", "1"),
		pageURL("events", "type", "environments.demo.crdcache.dev/v1", "key", "production-eu"),
		pageURL("export", "type", workloadsID, "format", "csv"), pageURL("export", "type", workloadsID, "format", "yaml")} {
		got := s.get(path, http.StatusOK)
		for _, foreign := range []string{"edge/", `"edge"`, "edge,", "namespace: edge", "dns", routesID, "shop", "vault",
			"releases.demo", "Foreign"} {
			if strings.Contains(got, foreign) {
				t.Errorf("the response to %s has the invisible %s: %s", path, foreign, got)
			}
		}
	}
	for _, each := range getJSON[healthAnswer](s, "health").Types {
		if each.Type == workloadsID && each.Objects != 5 {
			t.Errorf("%d workloads, want the 5 visible ones", each.Objects)
		}
	}
	if got := getJSON[searchAnswer](s, "search", "text", "dns"); got.MoreNames > 0 || len(got.Names) > 0 {
		t.Errorf("search for an invisible object: %+v, want nothing", got)
	}
	if got := s.get(pageURL("events", "type", workloadsID, "key", "payments/ledger"),
		http.StatusOK); !strings.Contains(got, "Own") {
		t.Errorf("Events of a visible object: %s, want the reason Own", got)
	}
	s.get(pageURL("events", "type", workloadsID, "key", "edge/dns"), http.StatusNotFound)
	s.get(pageURL("events", "type", routesID, "key", "storefront/shop"), http.StatusForbidden)
	s.get(pageURL("export", "type", routesID, "format", "csv"), http.StatusForbidden)
}

// TestPageIsSmall limits the files of the page, which is built from modules without a build step.
func TestPageIsSmall(t *testing.T) {
	const limit = 120 << 10
	total := 0
	for path, file := range assets() {
		if path != "/" {
			total += len(file.content)
		}
	}
	if total > limit {
		t.Errorf("the files of the page have %d bytes, at most %d are allowed", total, limit)
	}
}
