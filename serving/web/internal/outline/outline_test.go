package outline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// yamlOf returns the lines of an outline as the text that the page shows.
func yamlOf(lines []Line) string {
	var b strings.Builder
	for _, line := range lines {
		b.WriteString(strings.Repeat("  ", line.Depth))
		if line.Dash {
			b.WriteString("- ")
		}
		b.WriteString(line.Key)
		if line.Key != "" {
			b.WriteString(":")
			if line.Text != "" {
				b.WriteString(" ")
			}
		}
		b.WriteString(line.Text + "\n")
	}
	return b.String()
}

// longKey matches a string that is too long for a YAML key.
var longKey = regexp.MustCompile(`"([^"\\]|\\.){500}`)

// checkOutline parses the outline of an object as YAML, and compares it with the object.
func checkOutline(t *testing.T, text []byte) {
	t.Helper()
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &object); err != nil || len(object) == 0 {
		return
	}
	if longKey.Match(text) {
		return
	}
	lines := Lines(object)
	written := yamlOf(lines)
	got, err := yaml.YAMLToJSON([]byte(written))
	if err != nil {
		t.Fatalf("%v:\n%s", err, written)
	}
	want, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(canonical(t, got), canonical(t, want)) {
		t.Errorf("%s\nis read from\n%s\nwritten for\n%s", got, written, want)
	}
	for i, line := range lines {
		if i+line.Fold >= len(lines) {
			t.Errorf("line %d can fold %d lines, but the outline has %d lines", i, line.Fold, len(lines))
		}
	}
}

// canonical returns JSON in a normalized encoding.
func canonical(t *testing.T, text []byte) []byte {
	t.Helper()
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(withoutMinusZero(value))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// withoutMinusZero replaces negative zeros, which JSON keeps and YAML reads as integers.
func withoutMinusZero(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = withoutMinusZero(value)
		}
	case []any:
		for i, value := range v {
			v[i] = withoutMinusZero(value)
		}
	case float64:
		if v == 0 {
			return 0.0
		}
	}
	return value
}

var samples = []string{
	`{"apiVersion":"v1","kind":"X","metadata":{"name":"a","labels":{"a.b/c":"1","y":"n","":"e"}},"spec":{"n":9007199254740993,"f":1.5,"l":[],"m":{},"z":null,"b":true}}`,
	`{"a":[{"b":1,"c":[1,[2,[]],{"d":{"e":"f"}}]},"x",[["y"]],{"z":[{"q":null}]},{}]}`,
	`{"a":"one\ntwo\n","b":"one\ntwo","c":"one\n\n","d":" lead\nx","e":"tab\t\nx","f":"a: b","g":"- a","h":"#x","i":"a #b","j":"0x1f","k":"1e3","l":"\u0085","m":"a:","n":"~"}`,
	`{"a":"true","b":"yes","c":"null","d":"","e":" x","f":"x ","g":"2024-01-01","h":"é","i":"\u2028","j":"=","k":"<<","l":"\u007f","m":"E1","n":"a, b","o":"[x]","p":"{x","q":"k8s.io/x: y"}`,
	`{"yes":1,"on":2,"1":3,"a b":4,"a: b":5,"-":6,"?":7,"\n":8,"e1":9}`,
	`{"a":{"b":"- x\n- y\n"},"c":[ "p\nq", {"r":"s\n\tt\nu"} ],"d":1e300,"e":0.1,"f":-0,"g":1e21}`,
}

func TestLinesAreYAML(t *testing.T) {
	for _, text := range samples {
		checkOutline(t, []byte(text))
	}
	deep := strings.Repeat(`{"a":[`, 80) + "1" + strings.Repeat("]}", 80)
	checkOutline(t, []byte(deep))
}

func FuzzLines(f *testing.F) {
	for _, text := range samples {
		f.Add([]byte(text))
	}
	f.Fuzz(checkOutline)
}

func decodeObject(t *testing.T, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func formatChanges(before, after map[string]any) string {
	fields, more := Changes(before, after)
	var lines []string
	for _, f := range fields {
		var by []string
		for _, m := range f.By {
			by = append(by, strings.TrimSuffix(m.Name+"/"+m.Subresource, "/"))
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s → %s %s", f.Op, f.Label, f.Before,
			f.After, strings.Join(by, ","))))
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("%d more", more))
	}
	return strings.Join(lines, "\n")
}

func TestFields(t *testing.T) {
	tests := map[string]struct{ before, after, want string }{
		"same": {`{a: 1}`, `{a: 1}`, ""},
		"versions": {`{metadata: {resourceVersion: "1", managedFields: []}}`,
			`{metadata: {resourceVersion: "2"}}`, ""},
		"changed":   {`{spec: {replicas: 1}}`, `{spec: {replicas: 2}}`, "changed .spec.replicas 1 → 2"},
		"other key": {`{spec: {"a.b/c": x}}`, `{spec: {"a.b/c": z}}`, `changed .spec["a.b/c"] x → z`},
		"added":     {`{}`, `{spec: {a: [1]}}`, `added .spec  → {"a":[1]}`},
		"removed":   {`{spec: {a: x, b: y}}`, `{spec: {b: y}}`, "removed .spec.a x →"},
		"kind":      {`{a: [1]}`, `{a: {b: 1}}`, `changed .a [1] → {"b":1}`},
		"null":      {`{a: null}`, `{}`, "removed .a null →"},
		"condition": {`{s: [{type: A, ok: "1"}, {type: B, ok: "1"}]}`,
			`{s: [{type: B, ok: "2"}, {type: A, ok: "1"}]}`, `changed .s[type=B].ok "1" → "2"`},
		"new element":     {`{s: [{name: a}]}`, `{s: [{name: b}, {name: a}]}`, `added .s[name=b]  → {"name":"b"}`},
		"removed element": {`{s: [{name: a}, {name: b}]}`, `{s: [{name: b}]}`, `removed .s[name=a] {"name":"a"} →`},
		"equal names":     {`{s: [{name: a}, {name: a}]}`, `{s: [{name: a}]}`, `removed .s[1] {"name":"a"} →`},
		"list of texts":   {`{s: [x, u]}`, `{s: [x, z, w]}`, "changed .s[1] u → z\nadded .s[2]  → w"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := formatChanges(decodeObject(t, tt.before), decodeObject(t, tt.after)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

const managedFields = `
- {manager: kubectl, operation: Apply, time: "1", fieldsV1: {"f:spec": {"f:replicas": {}, "f:list": {"k:{\"name\":\"a\"}": {"f:x": {}}, "v:\"s\"": {}}}}}
- {manager: operator, operation: Update, subresource: status, time: "%s", fieldsV1: {"f:status": {"f:conditions": {"k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}}}, "f:whole": {}}}}
`

func TestManagers(t *testing.T) {
	objectWithManagers := func(at, rest string) map[string]any {
		o := decodeObject(t, rest)
		o["metadata"] = map[string]any{"managedFields": decodeObject(t, "x:"+fmt.Sprintf(managedFields, at))["x"],
			"generation": int64(len(at))}
		return o
	}
	tests := map[string]struct{ before, after, want string }{
		"condition": {`{status: {conditions: [{type: Ready, status: "False"}]}}`,
			`{status: {conditions: [{type: Ready, status: "True"}]}}`,
			`changed .status.conditions[type=Ready].status "False" → "True" operator/status`},
		"as a whole": {`{status: {whole: {deep: {a: x}}}}`, `{status: {whole: {deep: {a: z}}}}`,
			"changed .status.whole.deep.a x → z operator/status"},
		"removed": {`{status: {whole: {a: x}}}`, `{status: {}}`,
			`removed .status.whole {"a":"x"} →  operator/status`},
		"other": {`{spec: {replicas: 1}}`, `{spec: {replicas: 2}}`,
			"changed .spec.replicas 1 → 2 kubectl"},
		"without a manager": {`{spec: {free: 1}}`, `{spec: {free: 2}}`, "changed .spec.free 1 → 2 operator/status"},
		"element": {`{spec: {list: [{name: a, x: 1}]}}`, `{spec: {list: [{name: a, x: 2}]}}`,
			"changed .spec.list[name=a].x 1 → 2 kubectl"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := formatChanges(objectWithManagers("1", tt.before), objectWithManagers("2",
				tt.after)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
	if got := formatChanges(objectWithManagers("1", `{status: {whole: x}}`), nil) + formatChanges(nil,
		objectWithManagers("1", `{a: b}`)); got != "" {
		t.Errorf("changed fields of a created or deleted object:\n%s", got)
	}
}
