package jsonpath_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

func Example() {
	path, err := jsonpath.Compile(`{.status.conditions[?(@.type=="Ready")].status}`)
	must(err)
	object := map[string]any{
		"status": map[string]any{
			"conditions": []any{
				map[string]any{"type": "Issuing", "status": "False"},
				map[string]any{"type": "Ready", "status": "True"},
			},
		},
	}
	path.Find(object, func(v any) bool {
		fmt.Println(v)
		return true
	})
	// Output: True
}

func ExampleCompile_error() {
	_, err := jsonpath.Compile(`.status.conditions[?(@.type="Ready")]`)
	fmt.Println(err)
	var e *jsonpath.Error
	if errors.As(err, &e) {
		fmt.Println(e.Caret())
	}
	// Output:
	// 1:28: E104: "=" is not a comparison; use "=="
	// .status.conditions[?(@.type="Ready")]
	//                            ^
}

func ExampleFromSegments() {
	path := jsonpath.FromSegments("metadata", "labels", "example.io/team")
	fmt.Println(path)
	// Output: .metadata.labels.example\.io/team
}

func ExampleCompileFilter() {
	notReady, err := jsonpath.CompileFilter(`!(@.status.conditions[?(@.type=="Ready" && @.status=="True")])`)
	must(err)
	for _, raw := range []string{
		`{"status":{"conditions":[{"type":"Ready","status":"True"}]}}`,
		`{"status":{}}`,
	} {
		holds, err := notReady.MatchJSONContext(context.Background(), []byte(raw))
		fmt.Println(holds, err)
	}
	// Output:
	// false <nil>
	// true <nil>
}

func ExampleSet() {
	several, err := jsonpath.CompileFilter("@.spec.replicas > 1")
	must(err)
	set := jsonpath.NewSet(
		jsonpath.MustCompile(".metadata.name"),
		jsonpath.MustCompile(".spec.dnsNames[*]"),
		several,
	)
	raw := []byte(`{"metadata":{"name":"web"},"spec":{"dnsNames":["a.example","b.example"],"replicas":3}}`)
	err = set.FindJSON(raw, func(i int, v jsonpath.Value) bool {
		if i == 2 {
			fmt.Println("has several replicas")
			return true
		}
		fmt.Println(i, v)
		return true
	})
	fmt.Println(err)
	// Output:
	// 0 web
	// 1 a.example
	// 1 b.example
	// has several replicas
	// <nil>
}

// Values of the same list element: find the elements, then evaluate each.
func ExampleValue_Raw() {
	each := jsonpath.MustCompile(".status.conditions[*]")
	key := jsonpath.NewSet(jsonpath.MustCompile(".type"), jsonpath.MustCompile(".status"))
	raw := []byte(`{"status":{"conditions":[{"status":"True","type":"Ready"},{"type":"Issuing","status":"False"}]}}`)
	err := each.FindJSON(raw, func(element jsonpath.Value) bool {
		var tuple [2]string
		_ = key.FindJSON(element.Raw(), func(i int, v jsonpath.Value) bool { // cannot fail: raw is valid JSON
			tuple[i] = v.String()
			return true
		})
		fmt.Println(tuple)
		return true
	})
	fmt.Println(err)
	// Output:
	// [Ready True]
	// [Issuing False]
	// <nil>
}

// must panics on an error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
