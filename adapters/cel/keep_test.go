package cel

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/internal/packed"
)

// TestKeepWhole verifies that objects for which an expression is true, or on which it fails, keep all fields,
// and that the expression selects the same objects when the others are reduced.
func TestKeepWhole(t *testing.T) {
	const text = "self.spec.rooms.all(r, self.spec.rooms.all(s, r.size + s.size > 0)) && !self.spec.paused"
	config, err := configOf("    keep:\n      paths: [.spec.class]\n      whole: {whenCEL: '" + text + "'}\n")
	if err != nil {
		t.Fatal(err)
	}
	options, err := bind.Options{}.ResourceOptions(config.Resources[0])
	if err != nil || options.Keep.WholeCEL != text {
		t.Fatal(options.Keep, err)
	}
	if err := options.Validate(); err != nil {
		t.Error(err)
	}
	keep, err := packed.NewKeepList(&packed.Condition{Expression: compileText(t, text)}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		spec  string
		whole bool
	}{
		"true":            {`"paused": false, "rooms": [{"size": 1}]`, true},
		"false":           {`"paused": true, "rooms": [{"size": 1}]`, false},
		"a missing field": {`"rooms": []`, true},
		"above the cost limit": {
			`"paused": true, "rooms": [` + strings.Repeat(`{"size": 1}, `, 3000) + `{"size": 1}]`, true},
		"another missing field": {`"paused": true, "rooms": [{}]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf(`{"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "x"},
				"spec": {%s, "dropped": 1}}`, test.spec)
			object, err := packed.NewPacker(keep).Pack([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			decoded := &unstructured.Unstructured{Object: decode(t, text)}
			keep.Apply(decoded)
			if diff := cmp.Diff(decoded.Object, object.Unstructured().Object); diff != "" {
				t.Errorf("(-decoded +packed):\n%s", diff)
			}
			_, isWhole, _ := unstructured.NestedFieldNoCopy(decoded.Object, "spec", "dropped")
			again := [2]bool{!keep.Reduces(object), !keep.Reduces(decoded)}
			if isWhole != test.whole || again != [2]bool{test.whole, test.whole} {
				t.Errorf("the object is whole: %v and, when it is tested again, %v; want %v", isWhole, again,
					test.whole)
			}
		})
	}
	_, err = configOf("    keep: {paths: [], whole: {whenCEL: 'self[self.kind] == 1'}}\n")
	if err == nil || !strings.Contains(err.Error(), "c.yaml:8:41: E008: the condition can read any field") {
		t.Error(err)
	}
	_, err = configOf("    keep: {paths: [], whole: {whenCEL: 'self.a + 1'}}\n")
	if err == nil || !strings.Contains(err.Error(), "the result of a condition must be a boolean") {
		t.Error(err)
	}
}
