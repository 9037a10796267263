package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const workloadsID = "workloads.demo.crdcache.dev/v1"

func TestTypes(t *testing.T) {
	s := newFixture(t, Options{})
	var ids []string
	for _, typ := range s.handler.source.visibleTypes() {
		ids = append(ids, typ.id)
	}
	want := []string{"environments.demo.crdcache.dev/v1", "releases.demo.crdcache.dev/v1",
		"routes.demo.crdcache.dev/v1", "secrets/v1", workloadsID, "namespaces/v1"}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	data := awaitEvent(t, s.openStream(), "types",
		func(data string) bool { return strings.Contains(data, workloadsID) })
	for _, part := range []string{`"title":"memory"`, `"state":"Synced"`,
		`"type":"Reachable","status":"True"`} {
		if !strings.Contains(data, part) {
			t.Errorf("%s is missing in %s", part, data)
		}
	}
	page := getJSON[typePage](s, "type", "type", workloadsID)
	if page.Kind != "Workload" || !page.Namespaced || len(page.Columns) != 15 ||
		page.Columns[0].Name != "Environment" || page.Columns[0].Sort != ".spec.environment" ||
		page.Columns[7].Sort != "age" || !page.Columns[8].Wide {
		t.Errorf("the page of the type is %+v, want the columns of its CRD", page)
	}
	if len(page.Indexes) != 12 || page.Indexes[0].Name != "namespace" || len(page.References) != 1 {
		t.Errorf("the indexes are %+v and the references %v, want 12 and 1", page.Indexes, page.References)
	}
	s.get(pageURL("type", "type", "nothing/v1"), http.StatusNotFound)
}

func TestTable(t *testing.T) {
	s := newFixture(t, Options{})
	all := getJSON[tableAnswer](s, "table", "type", workloadsID, "sort", "namespace", "descending", "1")
	result := getJSON[tableAnswer](s, "table", "type", workloadsID, "query", "team=ledger && where(.spec.env)",
		"sort", ".spec.tier")
	if result.Total == 0 || result.Total >= all.Total || all.Total != all.Objects ||
		result.ResourceVersion == "" {
		t.Fatalf("%d of %d objects in %+v, want some", result.Total, all.Total, result)
	}
	plan := strings.Join(result.Plan, "\n")
	for _, part := range []string{"Starts with team=ledger (", "Reads the rest to check where(",
		"In the order of .spec.tier", "Found "} {
		if !strings.Contains(plan, part) {
			t.Errorf("the plan does not contain %q:\n%s", part, plan)
		}
	}
	if scan := getJSON[tableAnswer](s, "table", "type", workloadsID, "query", "!team"); !scan.Scan {
		t.Errorf("Scan = false for a query without an index: %+v", scan)
	}
	rows := getJSON[rowsAnswer](s, "rows", "type", workloadsID, "table", result.Table, "from", "0")
	if len(rows.Rows) != result.Total || len(rows.Rows[0].Cells) != 15 {
		t.Fatalf("the rows are %+v, want all found objects", rows)
	}
	var ledger tableRow
	for _, row := range rows.Rows {
		if row.Key == "payments/ledger" {
			ledger = row
		}
	}
	if len(ledger.Cells) == 0 || ledger.Cells[0] != "production-eu" || ledger.Cells[2] != "6" ||
		ledger.Cells[11] != "9007199254740993" {
		t.Errorf("the row is %+v, want exact numbers", ledger)
	}
	if rows := getJSON[rowsAnswer](s, "rows", "type", workloadsID, "table", result.Table, "from",
		"100000"); len(rows.Rows) != 0 {
		t.Errorf("rows after the last one = %+v, want none", rows)
	}
	s.get(pageURL("rows", "type", "routes.demo.crdcache.dev/v1", "table", result.Table, "from", "0"),
		http.StatusGone)
	s.get(pageURL("rows", "type", workloadsID, "table", result.Table, "from", "-1"), http.StatusBadRequest)
}

func TestInvalidQueries(t *testing.T) {
	s := newFixture(t, Options{})
	tests := map[string]struct {
		query  string
		status int
		want   string
	}{
		"index":    {"team=ledger && taem=x", 400, `"offset":15,"length":6`},
		"behind é": {`team="é" && taem=x`, 400, `"offset":12,"length":6`},
		"syntax":   {"team=", 400, `"error":`},
		"long":     {strings.Repeat("a", maxQueryBytes+1), 413, "8192 bytes"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := s.get(pageURL("table", "type", workloadsID, "query", tt.query),
				tt.status); !strings.Contains(got, tt.want) {
				t.Errorf("response %s, want %s in it", got, tt.want)
			}
		})
	}
}

func TestCompletion(t *testing.T) {
	s := newFixture(t, Options{})
	tests := map[string]struct{ query, want string }{
		"index":    {"te", "team"},
		"operator": {"team ", "="},
		"value":    {"team=led", "ledger"},
		"second":   {"team=ledger && env", "environment"},
		"join":     {"team=ledger ", "&& "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := getJSON[completeAnswer](s, "complete", "type", workloadsID, "query", tt.query)
			if len(got.Proposals) == 0 || got.Proposals[0].Text != tt.want {
				t.Errorf("proposals are %+v, want %s first", got, tt.want)
			}
		})
	}
}
