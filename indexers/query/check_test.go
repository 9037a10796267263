package query_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/query"
)

// The conditions of a query are compared with the schema wherever they stand in it.
func TestCheck(t *testing.T) {
	text := &crd.Schema{Type: "string"}
	spec := &crd.Schema{Type: "object", Properties: map[string]*crd.Schema{"color": text, "watts": {Type: "number"}}}
	lamps := &crd.Definition{
		Group: "example.com", Names: crd.Names{Plural: "lamps", Kind: "Lamp"},
		Versions: []crd.Version{{Name: "v1", Served: true, Schema: &crd.Schema{Type: "object", Properties: map[string]*crd.Schema{"spec": spec}}}},
	}
	parsed, err := query.Parse(`room=kitchen && !(label("a=b") || where(".spec.colour")) && where("@.spec.watts > 9")`)
	if err != nil {
		t.Fatal(err)
	}
	asked := query.And(parsed, query.Not(query.Where(`@.spec.watts == "9"`)))
	var got []string
	for _, d := range query.Check(asked, lamps, "v1") {
		got = append(got, d.Source, d.Message)
	}
	want := []string{
		".spec.colour", ".spec.colour is not in lamps.example.com/v1",
		`@.spec.watts == "9"`, `.spec.watts is a number, and "9" is text: the comparison never holds`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !query.LooksIntoObjects(asked) || query.LooksIntoObjects(query.And(query.Eq("room", "hall"), query.Label("a"))) {
		t.Error("it is not known which query looks into objects")
	}
}
