package indexers_test

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
)

// widgetDefinition returns the CRD of widgets with a small schema.
func widgetDefinition() *crd.Definition {
	schema := &crd.Schema{Type: "object", Properties: map[string]*crd.Schema{
		"spec": {Type: "object", Properties: map[string]*crd.Schema{
			"on":    {Type: "boolean"},
			"count": {Type: "integer"},
			"names": {Type: "array", Items: &crd.Schema{Type: "string"}},
			"empty": {Type: "object"},
			"any": {Type: "object", PreserveUnknown: true,
				Properties: map[string]*crd.Schema{"known": {Type: "string"}}},
			"raw": {Type: "object", EmbeddedResource: true},
		}},
	}}
	return &crd.Definition{
		Group: "example.com", Names: crd.Names{Plural: "widgets", Kind: "Widget"},
		Versions: []crd.Version{{Name: "v1", Served: true, Schema: schema}},
	}
}

func TestCheckPaths(t *testing.T) {
	tests := []struct{ path, want string }{
		{".kind", ""},
		{".apiVersion", ""},
		{".metadata.ownerReferences[*].uid", ""},
		{".metadata.annotations['a']", ""},
		{".spec.names[*]", ""},
		{".spec.names[-1]", ""},
		{".spec.names.*", ""},
		{"..on", ""},
		{".spec.any.known", ""},
		{".spec.any.unknown.x[*]", "W301"},
		{".spec.any", "E306: .spec.any is a map"},
		{".spec.raw.spec.x", "W301"},
		{".spec.on.x", "E303: .x on .spec.on, which is a boolean"},
		{".spec.count[0]", "E303: [0] on .spec.count, which is a number"},
		{".spec.names[0].x", "E303: .x on .spec.names[0], which is text"},
		{".spec.empty.x", "E301: .spec.empty.x is not in widgets.example.com/v1; the schema has no fields there"},
		{".spec.empty[*]", "E302: [*] on .spec.empty, which is a map; the schema has no fields in it"},
		{".spec.empty.*", "E302: .* on .spec.empty, which is a map; the schema has no fields in it"},
		{"$", "E306: the object is a map"},
		{"$[0]", "E302: [0] on the object, which is a map"},
		{".spec.*.x", "W301"},
	}
	for _, test := range tests {
		text := configWith("  - name: w\n    match: {group: example.com, kind: Widget}\n    indexes: [{name: a, path: \"" +
			test.path + "\"}]\n")
		c, err := indexers.Parse(indexers.Source{Name: "w.yaml",
			Data: []byte(strings.Replace(text, "NAME", "n", 1))})
		if err != nil {
			t.Errorf("Parse with the path %s: %v", test.path, err)
			continue
		}
		warnings, err := c.Check([]*crd.Definition{widgetDefinition()})
		got := ""
		for _, w := range warnings {
			got += w.String()
		}
		if err != nil {
			got += err.Error()
		}
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("findings of Check for the path %s = %q, want %q", test.path, got, test.want)
		}
	}
}
