package readapi_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/serving/readapi"
)

func tableOf(t *testing.T, a testkit.Answer) metav1.Table {
	t.Helper()
	var got metav1.Table
	if err := json.Unmarshal([]byte(a.Body), &got); err != nil || got.Kind != "Table" ||
		got.APIVersion != "meta.k8s.io/v1" {
		t.Fatalf("invalid Table (%v): %s", err, a.Body)
	}
	return got
}

func TestTable(t *testing.T) {
	s := apiserver.NewStorage(apiserver.StorageOptions{})
	apply(t, s, testkit.WidgetCRD)
	born := time.Now().Add(-61 * time.Minute).UTC().Format(time.RFC3339)
	apply(t, s, fmt.Sprintf("{apiVersion: example.com/v1, kind: Widget, metadata: {name: full, creationTimestamp: %q}, spec: {color: red, size: 3, weight: 2, born: %q}, status: {ready: true}}", born, born))
	apply(t, s, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: odd}, spec: {color: {a: [1]}, size: "3", weight: 0.5, born: never}, status: {ready: "true"}}`)
	apply(t, s, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: void}}`)
	h := handlerOf(s)
	got := tableOf(t, get(h, widgetsPath, "Accept", asTable))
	var columns []string
	for _, c := range got.ColumnDefinitions {
		columns = append(columns, fmt.Sprint(c.Name, " ", c.Type, " ", c.Priority))
	}
	wantColumns := []string{"Name string 0", "Color string 0", "Size integer 0", "Weight number 1",
		"Ready boolean 0", "Born date 0"}
	if diff := cmp.Diff(wantColumns, columns); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	var rows [][]any
	for _, r := range got.Rows {
		rows = append(rows, r.Cells)
		if !strings.Contains(string(r.Object.Raw), `"kind":"PartialObjectMetadata"`) {
			t.Errorf("the row's object is %s, want a PartialObjectMetadata", r.Object.Raw)
		}
	}
	want := [][]any{
		{"full", "red", 3.0, 2.0, true, "61m"},
		{"odd", `{"a":[1]}`, nil, 0.5, nil, "<invalid>"},
		{"void", nil, nil, nil, nil, nil},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}

	one := tableOf(t, get(h, inDefaultPath+"/full?includeObject=None", "Accept", asTable))
	if len(one.Rows) != 1 || len(one.Rows[0].Object.Raw) != 0 || one.ResourceVersion == "" {
		t.Errorf("table without objects = %+v, want one row", one)
	}
	one = tableOf(t, get(h, inDefaultPath+"/full?includeObject=Object", "Accept", asTable))
	if len(one.Rows) != 1 || !strings.Contains(string(one.Rows[0].Object.Raw),
		`"apiVersion":"example.com/v1"`) {
		t.Errorf("table with objects = %+v, want one row", one)
	}
	if other := tableOf(t, get(h, "/apis/example.com/v1beta1/widgets", "Accept",
		asTable)); len(other.ColumnDefinitions) != 2 || other.ColumnDefinitions[1].Name != "Age" ||
		other.Rows[0].Cells[1] != "61m" {
		t.Errorf("table of a version without columns = %+v, want name and age", other)
	}
}

// TestBrokenColumn verifies that a column with an invalid path and all later columns are dropped.
func TestBrokenColumn(t *testing.T) {
	columns := []crd.Column{{Name: "A", JSONPath: ".a"}, {Name: "B", JSONPath: ".b["},
		{Name: "C", JSONPath: ".c"}}
	s := apiserver.NewStorage(apiserver.StorageOptions{})
	if err := s.SetType(readapi.Type{Group: "example.com", Names: crd.Names{Plural: "gadgets", Kind: "Gadget"},
		Versions: []readapi.Version{{Name: "v1", Columns: columns}}}); err != nil {
		t.Fatal(err)
	}
	got := tableOf(t, get(handlerOf(s), "/apis/example.com/v1/gadgets", "Accept", asTable))
	if len(got.ColumnDefinitions) != 2 {
		t.Errorf("the columns are %+v, want 2", got.ColumnDefinitions)
	}
}
