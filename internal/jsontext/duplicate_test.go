package jsontext

import (
	"fmt"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"
)

// TestDuplicate compares the results with sigs.k8s.io/json.
func TestDuplicate(t *testing.T) {
	var keys []string
	for i := range 3 * manyKeys {
		keys = append(keys, fmt.Sprintf(`"k%d":%d`, i, i))
	}
	many := strings.Join(keys, ",")
	for name, tt := range map[string]struct{ data, duplicate string }{
		"none":             {`{"a":1,"b":{"a":[{"a":1},{"a":1}]},"c":[]}`, ""},
		"no object":        {` "a" `, ""},
		"at the top":       {`{"a":1, "b":2, "a":3}`, `"a":3`},
		"below":            {`{"a":{"b":1,"c":2,"b":3}}`, `"b":3`},
		"in an array":      {`{"a":[1,{},[{"b":1},{"b":2,"b":3}]]}`, `"b":3`},
		"after an object":  {`{"a":{"x":1},"b":{"y":{}},"a":3}`, `"a":3`},
		"empty key":        {`{"a":{"":1,"":2}}`, `"":2`},
		"escaped":          {`{"a":1,"\u0061":2}`, `"\u0061"`},
		"with white space": {"{\n\t\"a\" : {\n\t\t\"b\" : [ 1 ] ,\n\t\t\"b\" : 2 } }", `"b" : 2`},
		"many keys":        {`{` + many + `}`, ""},
		"first of many":    {`{` + many + `,"k0":true}`, `"k0":true`},
		"last of many": {`{` + many + fmt.Sprintf(`,"k%d":true}`, 3*manyKeys-1),
			fmt.Sprintf(`"k%d":true`, 3*manyKeys-1)},
	} {
		t.Run(name, func(t *testing.T) {
			path, offset, found := Duplicate([]byte(tt.data))
			if found != (tt.duplicate != "") ||
				found && !strings.HasPrefix(tt.data[offset:], tt.duplicate) {
				t.Fatalf("found %v at %d, want %q", found, offset, tt.duplicate)
			}
			var value any
			problems, err := kjson.UnmarshalStrict([]byte(tt.data), &value, kjson.DisallowDuplicateFields)
			if err != nil || found != (len(problems) > 0) {
				t.Fatalf("sigs.k8s.io/json finds %v, error %v", problems, err)
			}
			if want := fmt.Sprintf("duplicate field %q", path); found && problems[0].Error() != want {
				t.Errorf("sigs.k8s.io/json reports %v, want %s", problems[0], want)
			}
		})
	}
}
