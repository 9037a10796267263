package jsonpath_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// TestComparisons verifies that Tests returns comparisons with the path on the left and the position of the
// literal.
func TestComparisons(t *testing.T) {
	tests := []struct {
		condition string
		want      []string
	}{
		{`@.a == "x"`, []string{`a == "x" at "x"`}},
		{`'x' < @.a`, []string{`a > "x" at 'x'`}},
		{`-1.5>=@.a`, []string{`a <= -1.5 at -1.5`}},
		{`@.a == null || !(@.b != true && +3 >  @.c)`, []string{`a == <nil> at null`, `b != true at true`,
			`c < 3 at +3`}},
		{`@.a == @.b || @.c || !@.d || 1 == 2`, nil},
		{`@.a[?(@.b == 1)]`, nil}, // the comparison is inside a nested filter
		{`("é" <= @.a)`, []string{`a >= "é" at "é"`}},
	}
	for _, test := range tests {
		f, err := jsonpath.CompileFilter(test.condition)
		if err != nil {
			t.Errorf("CompileFilter(%s): %v", test.condition, err)
			continue
		}
		var got []string
		for _, c := range f.Tests() {
			if !c.HasLiteral {
				continue
			}
			literal := fmt.Sprint(c.Literal)
			if s, ok := c.Literal.(string); ok {
				literal = fmt.Sprintf("%q", s)
			}
			got = append(got, fmt.Sprintf("%s %s %s at %s", c.Path[0].Selectors[0].Name, c.Op, literal,
				test.condition[c.Offset:c.End]))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("Tests of %s (-want +got):\n%s", test.condition, diff)
		}
	}
}
