package complete

import "testing"

func TestAt(t *testing.T) {
	tests := []struct {
		text string
		want Place
	}{
		{"", Place{Term, "", ""}},
		{"iss", Place{Term, "iss", ""}},
		{"team=a && iss", Place{Term, "iss", ""}},
		{"team=a, iss", Place{Term, "iss", ""}},
		{"!(iss", Place{Term, "iss", ""}},
		{"dangling(is", Place{Term, "dangling(is", ""}},
		{"issuer ", Place{Operator, "", "issuer"}},
		{"issuer !", Place{Operator, "!", "issuer"}},
		{"issuer con", Place{Operator, "con", "issuer"}},
		{"team=a && issuer ", Place{Operator, "", "issuer"}},
		{"issuer=", Place{Value, "", "issuer"}},
		{"issuer = le", Place{Value, "le", "issuer"}},
		{"issuer!=le", Place{Value, "le", "issuer"}},
		{"watts<=1", Place{Value, "1", "watts"}},
		{"issuer in (", Place{Value, "", "issuer"}},
		{"issuer in (a, b", Place{Value, "b", "issuer"}},
		{"host contains ex", Place{Value, "ex", "host"}},
		{`issuer="le t`, Place{Value, `"le t`, "issuer"}},
		{"team=a && issuer=x", Place{Value, "x", "issuer"}},
		{"issuer=x ", Place{Join, "", ""}},
		{"issuer=x &", Place{Join, "&", ""}},
		{"dangling() ", Place{Join, "", ""}},
		{"where(.spec.", Place{}},
		{`label("app=`, Place{}},
		{"condition=Ready/Tr", Place{Value, "Ready/Tr", "condition"}},
	}
	for _, tt := range tests {
		if got := At(tt.text); got != tt.want {
			t.Errorf("%q: %+v, want %+v", tt.text, got, tt.want)
		}
	}
}

func TestOperators(t *testing.T) {
	if plain, sorted := len(Operators(false)), len(Operators(true)); plain >= sorted {
		t.Errorf("%d operators, and %d of a sorted index", plain, sorted)
	}
}
