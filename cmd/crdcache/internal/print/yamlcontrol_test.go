package print

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	goyaml "go.yaml.in/yaml/v2"
)

// TestMarshalYAMLAnyCharacter verifies that each character can be read back from YAML, in keys and values.
func TestMarshalYAMLAnyCharacter(t *testing.T) {
	all := map[string]any{"": "\x7f"} // yaml.Marshal fails for it
	for r := rune(0); r < 0x10000; r++ {
		if r >= 0x300 && r < 0x2000 || r >= 0x3000 && r < 0xe000 { // letters, and unassigned characters
			continue
		}
		all[fmt.Sprintf("%04x", r)] = map[string]any{"k" + string(r) + "k": "v" + string(r) + "v"}
	}
	text, err := MarshalYAML(all)
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := yaml.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, back); diff != "" {
		t.Errorf("text after encoding and decoding (-want +got):\n%s", diff)
	}
}

// TestYAMLLongKey verifies that keys that are too long for the YAML library's conversion from JSON are
// printed.
func TestYAMLLongKey(t *testing.T) {
	object := map[string]any{"data": map[string]any{strings.Repeat("k", 2000): int64(1 << 60)}, "kind": "A"}
	text, err := MarshalYAML(object)
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := goyaml.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(back["data"]); !strings.HasSuffix(got, ":1152921504606846976]") || len(got) < 2000 {
		t.Errorf("the decoded object is %s, want the long key with its exact number", got)
	}
}
