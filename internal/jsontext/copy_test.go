package jsontext

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCopyValue verifies that values of any type can be copied, and that the copy shares no maps and lists.
func TestCopyValue(t *testing.T) {
	type point struct{ X int }
	original := func() map[string]any {
		return map[string]any{
			"nil": nil, "int": 1, "uint8": uint8(2), "float32": float32(1.5), "struct": point{3}, "pointer": &point{4},
			"nils": []any{map[string]any(nil), []any(nil), []string(nil), map[string]int(nil), (*point)(nil)},
			"list": []any{map[string]any{"a": int64(1)}}, "strings": []string{"a"}, "bytes": []byte("b"),
			"map": map[string]string{"c": "d"}, "maps": []map[string]any{{"e": []int{5}}},
			"array": [2]int{6, 7}, "keys": map[point][]any{{8}: {"f", nil}},
		}
	}
	from := original()
	copied := CopyValue(from).(map[string]any)
	if diff := cmp.Diff(original(), copied); diff != "" {
		t.Fatalf("the copy (-want +got):\n%s", diff)
	}
	copied["strings"].([]string)[0] = "changed"
	copied["bytes"].([]byte)[0] = 'x'
	copied["map"].(map[string]string)["c"] = "changed"
	copied["maps"].([]map[string]any)[0]["e"].([]int)[0] = 0
	copied["list"].([]any)[0].(map[string]any)["a"] = "changed"
	copied["keys"].(map[point][]any)[point{8}][0] = "changed"
	copied["int"] = 0
	if diff := cmp.Diff(original(), from); diff != "" {
		t.Errorf("the original after changes of the copy (-want +got):\n%s", diff)
	}
}
