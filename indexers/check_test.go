package indexers_test

import (
	"errors"
	"strings"
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

// configWithBothErrors has errors in the config itself, and errors that only the schemas reveal.
const configWithBothErrors = `  - name: w
    match: {group: demo.crdcache.dev, resource: workloads}
    prune: {remove: [.spec.image]}
    indexes:
    - {name: a, pathes: .spec.tier}
    - {name: b, path: .spec.tire}
    - {name: c, each: ".spec.ports[", key: [{name: x, path: .nowhere}, {name: y, path: $.spec.nowhere}]}
    - {name: d, path: .metadata.labels.example.com/team}
    - {name: e, path: .spec.tier, type: Int, when: '@.spec.paused'}
    - {name: f, path: .spec.image}
    - {name: g, path: .spec.tier, order: Sorted, default: '1', type: [x]}
  - name: nothing
  - name: other
    match: {group: demo.crdcache.dev, resource: route}
`

func checkSources(text string, definitions []*crd.Definition, err error) (*indexers.Config, error) {
	source := indexers.Source{Name: "c.yaml", Data: []byte(strings.Replace(configWith(text), "NAME", "n", 1))}
	return indexers.CheckSources(indexers.CheckOptions{Definitions: func([]string) ([]*crd.Definition,
		error) {
		return definitions, err
	}}, source)
}

// TestDecodingAndSchemaErrorsTogether verifies that CheckSources reports all errors in the order of the file,
// one for each cause.
func TestDecodingAndSchemaErrorsTogether(t *testing.T) {
	config, err := checkSources(configWithBothErrors, definitions(t), nil)
	var configErr *indexers.ConfigError
	if !errors.As(err, &configErr) || config != nil {
		t.Fatalf("CheckSources of a broken config = %v, %v; want only a *ConfigError", config, err)
	}
	positions := func(all []indexers.Diagnostic) (out []string) {
		for _, d := range all {
			text, _, _ := strings.Cut(d.String(), ": ")
			out = append(out, strings.TrimPrefix(text, "c.yaml:")+" "+string(d.Code))
		}
		return out
	}
	want := []string{"10:17 E001", "11:28 E301", "12:35 E102", "13:47 E020", "14:41 E307", "16:70 E003",
		"17:5 E004", "19:49 E304"}
	if diff := cmp.Diff(want, positions(configErr.Diagnostics)); diff != "" {
		t.Errorf("positions of the errors (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"14:54 W308", "15:23 W001"}, positions(configErr.Warnings)); diff != "" {
		t.Errorf("positions of the warnings (-want +got):\n%s", diff)
	}
}

func TestCheckSources(t *testing.T) {
	validConfig := "  - name: w\n    match: {group: demo.crdcache.dev, resource: workloads}\n    indexes: [{name: a, path: .metadata.name, when: '@.spec.paused'}]\n"
	config, err := checkSources(validConfig, definitions(t), nil)
	if err != nil || len(config.Resources) != 1 || len(config.Warnings) != 1 {
		t.Errorf("CheckSources of a valid config = %+v, %v; want one resource and one warning", config, err)
	}
	unreachable := errors.New("the server does not answer")
	if config, err = checkSources(validConfig, nil, unreachable); !errors.Is(err, unreachable) ||
		config != nil {
		t.Errorf("CheckSources without the CRDs = %+v, %v; want only the error %q", config, err, unreachable)
	}
	var configErr *indexers.ConfigError
	_, err = checkSources(configWithBothErrors, nil, unreachable)
	if !errors.Is(err, unreachable) || !errors.As(err, &configErr) || len(configErr.Diagnostics) != 5 {
		t.Errorf("CheckSources of a broken config without the CRDs: got the error %v, want 5 findings and %q",
			err, unreachable)
	}
	if config, err = indexers.Load("nowhere.yaml"); !errors.As(err, &configErr) || config != nil ||
		configErr.Diagnostics[0].Code != "E017" {
		t.Errorf("Load of a file that does not exist = %+v, %v; want only a finding E017", config, err)
	}
}

// TestTypesAgainstSchemas verifies that the findings agree with the index: an error if the index has none of
// the values that a schema allows, a warning if it has only some of them.
func TestTypesAgainstSchemas(t *testing.T) {
	text := []any{"x", "7", "true", "2026-01-01T00:00:00Z", "90m", "10.0.0.1", "1.2.3",
		"2026-01-31", "10.0.0.0/8"}
	kinds := []struct {
		name    string
		schema  crd.Schema
		values  []any
		anyText bool // the schema allows any text: text that does not fit the type is not reported
	}{
		{"boolean", crd.Schema{Type: "boolean"}, []any{true, false}, false},
		{"integer", crd.Schema{Type: "integer"}, []any{int64(1), int64(7)}, false},
		{"number", crd.Schema{Type: "number"}, []any{int64(7), 2.5}, false},
		{"text", crd.Schema{Type: "string"}, text, true},
		{"time", crd.Schema{Type: "string", Format: "date-time"},
			[]any{"2026-01-01T00:00:00Z", "2026-01-01T01:00:00.5+01:00"}, false},
		{"other format", crd.Schema{Type: "string", Format: "hostname"}, text, true},
		{"conditions", crd.Schema{Type: "string", Enum: []any{"True", "False", "Unknown"}},
			[]any{"True", "False", "Unknown"}, false},
		{"words", crd.Schema{Type: "string", Enum: []any{"big", "small"}}, []any{"big", "small"}, false},
		{"words and a number", crd.Schema{Type: "string", Enum: []any{"auto", "90m", "7"}},
			[]any{"auto", "90m", "7"}, false},
		{"numbers", crd.Schema{Type: "integer", Enum: []any{1.0, 7.0}}, []any{int64(1), int64(7)}, false},
		{"date", crd.Schema{Type: "string", Format: "date"}, []any{"2026-01-31"}, false},
		{"cidr", crd.Schema{Type: "string", Format: "cidr"}, []any{"10.0.0.0/8", "::/0"}, false},
		{"ipv4", crd.Schema{Type: "string", Format: "ipv4"}, []any{"10.0.0.1"}, false},
		{"format duration", crd.Schema{Type: "string", Format: "duration"}, []any{"90m"}, false},
		{"uuid", crd.Schema{Type: "string", Format: "uuid"}, []any{"123e4567-e89b-12d3-a456-426614174000"},
			false},
		{"int-or-string", crd.Schema{IntOrString: true}, append([]any{int64(7)}, text...), true},
	}
	types := []string{"", "String", "Int", "Number", "Bool", "Quantity", "Duration", "Time", "IP", "SemVer",
		"Date", "CIDR"}
	partlyIndexed := 0
	for _, kind := range kinds {
		for _, typ := range types {
			field := ""
			if typ != "" {
				field = ", type: " + typ
			}
			index := "{name: i, path: .spec.v" + field + "}"
			indexed, omitted := 0, 0
			f := compile(t, index)
			for _, v := range kind.values {
				if len(keysOf(t, f, spec(m{"v": v}))) > 0 {
					indexed++
				} else if _, ok := v.(string); !ok || !kind.anyText {
					omitted++
				}
			}
			want := ""
			switch {
			case indexed == 0:
				want = "E307"
			case omitted > 0 && (kind.name != "int-or-string" || typ == "String"): // other types use the text
				want = "W306"
				partlyIndexed++
			}
			schema := kind.schema
			if got := codesOf(t, index, &schema); got != want {
				t.Errorf("codes for type %q on %s = %q, want %q: the index has %d of the values and omits %d",
					typ, kind.name, got, want, indexed, omitted)
			}
		}
	}
	if partlyIndexed != 7 {
		t.Errorf("%d pairs of a type and a schema omit some values; want int on a number, "+
			"string on an int-or-string and five on words and a number", partlyIndexed)
	}
}

// codesOf returns the codes of the findings for an index on a type with the given schema of .spec.v.
func codesOf(t *testing.T, index string, schema *crd.Schema) string {
	t.Helper()
	text := configWith("  - name: w\n    match: {group: example.com, kind: Widget}\n    indexes: [" +
		index + "]\n")
	c, err := indexers.Parse(indexers.Source{Name: "w.yaml",
		Data: []byte(strings.Replace(text, "NAME", "n", 1))})
	noError(t, err)
	widget := widgetDefinition()
	widget.Versions[0].Schema.Properties["spec"].Properties["v"] = schema
	diagnostics, err := c.Check([]*crd.Definition{widget})
	diagnostics = append(diagnostics, findingsOf(err)...)
	codes := make([]string, len(diagnostics))
	for i, d := range diagnostics {
		codes[i] = string(d.Code)
	}
	return strings.Join(codes, " ")
}

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
