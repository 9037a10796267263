package outline

import (
	"bytes"
	"encoding/json"
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
