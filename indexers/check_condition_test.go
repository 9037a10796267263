package indexers_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers"
)

// findingsOf returns the diagnostics of a ConfigError.
func findingsOf(err error) []indexers.Diagnostic {
	var configErr *indexers.ConfigError
	if errors.As(err, &configErr) {
		return configErr.Diagnostics
	}
	return nil
}

// widgetDefinitionOfAllTypes returns the CRD of widgets with a field of each type of value.
func widgetDefinitionOfAllTypes() *crd.Definition {
	d := widgetDefinition()
	fields := d.Versions[0].Schema.Properties["spec"].Properties
	fields["ratio"] = &crd.Schema{Type: "number"}
	fields["port"] = &crd.Schema{IntOrString: true}
	fields["level"] = &crd.Schema{Type: "integer", Enum: []any{1.0, 2.0}}
	fields["size"] = &crd.Schema{Type: "string", Enum: []any{"small", "large"}, Nullable: true}
	fields["at"] = &crd.Schema{Type: "string", Format: "date-time"}
	return d
}

func TestCheckCondition(t *testing.T) {
	const never, always = ": the comparison never holds; ", ": the comparison holds for every value; "
	tests := []struct{ text, want string }{
		{`@.spec.count > 4 && @.spec.ratio == 2.5 && @.spec.on == true && @.spec.size != "large"`, ""},
		{`@.spec.port == 80 || @.spec.port == "http"`, ""},
		{`@.spec.size == null || @.spec.count != null`, ""},
		{`@.spec.level == 2 && @.spec.level < 5`, ""},
		{`@.spec.any.x == 1 || @.spec.raw == true`, ""},
		{`@.spec.on <= true`, ""},
		{`@.spec.names[?(@ > "a")]`, ""},
		{`@.metadata.labels["a.b/c"] == "x"`, ""},
		{`.spec.names[*]`, ""},
		{`spec.count`, ""},
		{`@.spec[`, ""},
		{`@.spec.cont > 4`, ":7: E301: .spec.cont is not in widgets.example.com/v1; did you mean .spec.count?"},
		{`spec.nmaes[*]`, ":5: E301: .spec.nmaes is not in widgets.example.com/v1; did you mean .spec.names?"},
		{`("é" == @.kind) && @.spec.cont`,
			":26: E301: .spec.cont is not in widgets.example.com/v1; did you mean .spec.count?"},
		{`@.metadata.labels.a.b/c == "x"`,
			`:20: E303: .b/c on .metadata.labels.a, which is text; for the label a.b/c write .metadata.labels["a.b/c"]`},
		{`@.spec.count > "4"`, `:16: W307: .spec.count is a number, and "4" is text` + never +
			"write 4, without quotes"},
		{`"four" != @.spec.count`, `:1: W307: .spec.count is a number, and "four" is text` + always +
			"compare it with a number"},
		{`@.spec.count == true`, ":17: W307: .spec.count is a number, and true is a boolean" + never +
			"compare it with a number"},
		{`@.spec.on == "true"`, `:14: W307: .spec.on is a boolean, and "true" is text` + never +
			"write true, without quotes"},
		{`@.spec.on == "yes"`, `:14: W307: .spec.on is a boolean, and "yes" is text` + never +
			"compare it with a boolean"},
		{`@.spec.on > false`, ":13: W307: .spec.on is a boolean, which has no order" + never +
			"compare it by == or !="},
		{`@.kind == 1.5`, `:11: W307: .kind is text, and 1.5 is a number` + never + `write "1.5", in quotes`},
		{`@.spec.at < 2026`, `:13: W307: .spec.at is a time, and 2026 is a number` + never +
			`write "2026", in quotes`},
		{`@.spec.port == true`, ":16: W307: .spec.port is a number or text, and true is a boolean" + never +
			"compare it with a number"},
		{`@.spec.count == 2.5`, ":17: W307: .spec.count has no fraction, and 2.5 has" + never +
			"compare it with an integer, or by < or >"},
		{`@.spec.size == "lagre"`, `:16: W307: .spec.size is never "lagre"` + never +
			`did you mean "large"?`},
		{`@.spec.level == 7`, `:17: W307: .spec.level is never 7` + never + `its values are 1, 2`},
		{`@.spec.names == "a"`, `:17: W307: .spec.names is a list` + never +
			`ask for its elements, as in @.spec.names[?(@ == "a")]`},
		{`@.spec == "a"`, `:11: W307: .spec is a map` + never + `compare one of its fields`},
		{`.spec.names[?(@ == 1)]`, `:20: W307: .spec.names[*] is text, and 1 is a number` + never +
			`write "1", in quotes`},
	}
	for _, test := range tests {
		got := ""
		for _, d := range indexers.CheckCondition(test.text, widgetDefinitionOfAllTypes(), "v1") {
			got += d.String()[len(":1"):] // there is no file, and one line
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("CheckCondition(%s) (-want +got):\n%s", test.text, diff)
		}
	}
}

// TestCheckConditionWithoutSchema verifies that without a schema there are no findings.
func TestCheckConditionWithoutSchema(t *testing.T) {
	d := widgetDefinition()
	d.Versions = append(d.Versions, crd.Version{Name: "v2", Served: true})
	for _, version := range []string{"v2", "v3"} {
		if got := indexers.CheckCondition("@.spec.nothing == 1", d, version); got != nil {
			t.Errorf("CheckCondition for version %s without a schema = %v, want no findings", version, got)
		}
	}
}
