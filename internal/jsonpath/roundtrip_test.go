package jsonpath_test

import (
	"testing"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// checkRoundTrip verifies that the canonical form compiles to a path with the same canonical form, without
// warnings about quoting.
func checkRoundTrip(t testing.TB, p *jsonpath.Path) {
	t.Helper()
	text := p.String()
	again, err := jsonpath.Compile(text)
	if err != nil {
		t.Fatalf("%q has the canonical form %q, which does not compile: %v", p.Expr(), text, err)
	}
	if again.String() != text {
		t.Fatalf("%q has the canonical form %q, whose canonical form is %q", p.Expr(), text, again)
	}
	if p.Singular() != again.Singular() {
		t.Fatalf("%q and its canonical form %q differ in Singular()", p.Expr(), text)
	}
	for _, w := range again.Warnings() {
		if w.Code == jsonpath.CodeOneKey {
			t.Fatalf("%q has the canonical form %q with the warning %v", p.Expr(), text, w)
		}
	}
}

func TestCanonicalForm(t *testing.T) {
	tests := []struct{ expr, want string }{
		{" {  $ } ", "$"},
		{"{$.spec['x']}", ".spec.x"},
		{`$['a.b']["c d"]`, `.a\.b["c d"]`},
		{`..['a b',*]`, `..["a b",*]`},
		{"$[1:2:1]", "$[1:2]"},
		{"$[?(((@.a)))]", "$[?(@.a)]"},
		{"$[?@==1&&@==2&&(@==3&&@==4)]", "$[?(@ == 1 && @ == 2 && @ == 3 && @ == 4)]"},
		{"$[?(@.a||@.b)&&@.c]", "$[?((@.a || @.b) && @.c)]"},
		{"$[?@.a||@.b&&@.c]", "$[?(@.a || @.b && @.c)]"},
		{"$[?!!@.a]", "$[?(!(!(@.a)))]"},
		{"$[?@=='a\"b']", `$[?(@ == "a\"b")]`},
		{"$[?@==1e400e]", ""},
		{"$[?@==1e30]", "$[?(@ == 1e+30)]"},
		{"$[?@[0].a>=@['b c']]", `$[?(@[0].a >= @["b c"])]`},
	}
	for _, tt := range tests {
		p, err := jsonpath.Compile(tt.expr)
		if tt.want == "" {
			if err == nil {
				t.Errorf("Compile(%s) = %s, want an error", tt.expr, p)
			}
			continue
		}
		if err != nil {
			t.Errorf("Compile(%s): %v", tt.expr, err)
			continue
		}
		if p.String() != tt.want {
			t.Errorf("Compile(%s) = %s, want %s", tt.expr, p, tt.want)
		}
		checkRoundTrip(t, p)
	}
}
