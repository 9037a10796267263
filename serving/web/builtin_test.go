package web

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestBuiltInColumns verifies that fields of types without a CRD are shown.
func TestBuiltInColumns(t *testing.T) {
	s := newFixture(t, Options{})
	s.load(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web",
			"namespace": "default"},
		"spec": map[string]any{"replicas": int64(3)}, "status": map[string]any{"readyReplicas": int64(2)},
	})
	if _, err := s.factory.ForResource(schema.GroupVersionResource{Group: "apps", Version: "v1",
		Resource: "deployments"}); err != nil {
		t.Fatal(err)
	}
	if err := s.factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	const id = "deployments.apps/v1"
	eventually(t, func() bool {
		typ := s.handler.source.find(id)
		return typ != nil && typ.informer.HasSynced()
	})
	var names []string
	for _, c := range getJSON[typePage](s, "type", "type", id).Columns {
		names = append(names, c.Name+" by "+c.Sort)
	}
	want := []string{"Desired by .spec.replicas", "Ready by .status.readyReplicas",
		"Up-to-date by .status.updatedReplicas", "Available by .status.availableReplicas", "Age by age"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	table := getJSON[tableAnswer](s, "table", "type", id, "sort", ".status.readyReplicas")
	rows := getJSON[rowsAnswer](s, "rows", "type", id, "table", table.Table, "from", "0").Rows
	if len(rows) != 1 || rows[0].Key != "default/web" ||
		!cmp.Equal(rows[0].Cells[:4], []string{"3", "2", "", ""}) {
		t.Errorf("the rows are %+v, want default/web with its replicas", rows)
	}
}
