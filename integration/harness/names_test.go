package harness

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestUniqueName(t *testing.T) {
	seen := map[string]bool{}
	for _, test := range []string{
		"TestSimple", "TestSimple", "Test", "TestÜmlaut/mit_Leer zeichen", "TestA/" + strings.Repeat("x",
			300), "Test---", "TestA/2",
	} {
		name := uniqueName(test)
		if seen[name] {
			t.Errorf("the test %s got the name %s of another test", test, name)
		}
		seen[name] = true
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			t.Errorf("the test %s got the invalid name %q: %v", test, name, problems)
		}
	}
}

func TestGroup(t *testing.T) {
	one, two := Group(t), Group(t)
	if one == two {
		t.Errorf("two calls returned the same group %s", one)
	}
	if problems := validation.IsDNS1123Subdomain(one); len(problems) > 0 {
		t.Errorf("Group() = %q, which is not a valid name: %v", one, problems)
	}
}
