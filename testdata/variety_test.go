package testdata_test

import (
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestVariety verifies that the objects still have the unusual values that other tests need.
func TestVariety(t *testing.T) {
	tests := map[string]struct {
		atLeast int
		holds   func(o *unstructured.Unstructured) bool
	}{
		"custom object": {36, func(o *unstructured.Unstructured) bool { return o.GetKind() != "Namespace" }},
		"no status": {4, func(o *unstructured.Unstructured) bool {
			return o.GetKind() != "Namespace" && o.Object["status"] == nil
		}},
		"empty status": {2,
			func(o *unstructured.Unstructured) bool { return isEmptyMap(o.Object["status"]) }},
		"status that a server keeps": {10,
			func(o *unstructured.Unstructured) bool {
				return o.GetKind() == "Release" &&
					o.Object["status"] != nil
			}},
		"null": {5, anywhere(func(v any) bool { return v == nil })},
		"empty list": {5,
			anywhere(func(v any) bool { l, ok := v.([]any); return ok && len(l) == 0 })},
		"empty map":    {5, anywhere(isEmptyMap)},
		"empty string": {3, anywhere(func(v any) bool { return v == "" })},
		"more than ten conditions": {1,
			func(o *unstructured.Unstructured) bool { return conditions(o) > 10 }},
		"no conditions": {3,
			func(o *unstructured.Unstructured) bool {
				return o.Object["status"] != nil &&
					conditions(o) == 0
			}},
		"integer beyond a double": {3,
			anywhere(func(v any) bool { i, ok := v.(int64); return ok && int64(float64(i)) != i })},
		"largest int64": {1,
			anywhere(func(v any) bool { return v == int64(9223372036854775807) })},
		"small fraction": {3,
			anywhere(func(v any) bool { f, ok := v.(float64); return ok && f < 0.001 })},
		"text outside ASCII": {5,
			anywhere(func(v any) bool { s, ok := v.(string); return ok && !ascii(s) })},
		"text outside the basic plane": {2,
			anywhere(func(v any) bool { s, ok := v.(string); return ok && beyondBMP(s) })},
		"line breaks": {1,
			annotated(func(_, v string) bool { return containsRune(v, '\n') })},
		"longest name": {1,
			func(o *unstructured.Unstructured) bool { return len(o.GetName()) == 253 }},
		"name with dots": {3,
			func(o *unstructured.Unstructured) bool { return containsRune(o.GetName(), '.') }},
		"annotation with dot, slash": {4,
			annotated(func(k, _ string) bool { return containsRune(k, '.') && containsRune(k, '/') })},
		"no labels": {2,
			func(o *unstructured.Unstructured) bool { return len(o.GetLabels()) == 0 }},
		"owner reference": {3,
			func(o *unstructured.Unstructured) bool { return len(o.GetOwnerReferences()) > 0 }},
		"two owners": {1,
			func(o *unstructured.Unstructured) bool { return len(o.GetOwnerReferences()) == 2 }},
		"finalizer": {1,
			func(o *unstructured.Unstructured) bool { return len(o.GetFinalizers()) > 0 }},
		"older version": {3,
			func(o *unstructured.Unstructured) bool { return o.GroupVersionKind().Version == "v1beta1" }},
	}
	objects := load(t, "objects")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n := 0
			for _, o := range objects {
				if tt.holds(o.Unstructured) {
					n++
				}
			}
			if n < tt.atLeast {
				t.Errorf("%d objects, want at least %d", n, tt.atLeast)
			}
		})
	}
}

// anywhere returns a condition for objects that have a value below spec or status for which holds returns
// true.
func anywhere(holds func(any) bool) func(*unstructured.Unstructured) bool {
	var walk func(v any) bool
	walk = func(v any) bool {
		if holds(v) {
			return true
		}
		switch v := v.(type) {
		case map[string]any:
			for _, child := range v {
				if walk(child) {
					return true
				}
			}
		case []any:
			for _, child := range v {
				if walk(child) {
					return true
				}
			}
		}
		return false
	}
	return func(o *unstructured.Unstructured) bool {
		for _, part := range []string{"spec", "status"} {
			if v, ok := o.Object[part]; ok && walk(v) {
				return true
			}
		}
		return false
	}
}

// annotated returns a condition for objects that have an annotation for which holds returns true.
func annotated(holds func(key, value string) bool) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		for k, v := range o.GetAnnotations() {
			if holds(k, v) {
				return true
			}
		}
		return false
	}
}

func isEmptyMap(v any) bool {
	m, ok := v.(map[string]any)
	return ok && len(m) == 0
}

func conditions(o *unstructured.Unstructured) int {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	return len(list)
}

func ascii(s string) bool {
	for _, r := range s {
		if r > unicode.MaxASCII {
			return false
		}
	}
	return true
}

func beyondBMP(s string) bool {
	for _, r := range s {
		if r > 0xffff {
			return true
		}
	}
	return false
}

func containsRune(s string, want rune) bool {
	for _, r := range s {
		if r == want {
			return true
		}
	}
	return false
}
