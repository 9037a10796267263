package print

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
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
