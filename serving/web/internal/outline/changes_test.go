package outline

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

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
