package complete

import "testing"

func TestAt(t *testing.T) {
	tests := []struct {
		text string
		want Position
	}{
		{"", Position{ConditionStart, "", ""}},
		{"iss", Position{ConditionStart, "iss", ""}},
		{"team=a && iss", Position{ConditionStart, "iss", ""}},
		{"team=a, iss", Position{ConditionStart, "iss", ""}},
		{"!(iss", Position{ConditionStart, "iss", ""}},
		{"dangling(is", Position{ConditionStart, "dangling(is", ""}},
		{"issuer ", Position{Operator, "", "issuer"}},
		{"issuer !", Position{Operator, "!", "issuer"}},
		{"issuer con", Position{Operator, "con", "issuer"}},
		{"team=a && issuer ", Position{Operator, "", "issuer"}},
		{"issuer=", Position{Value, "", "issuer"}},
		{"issuer = le", Position{Value, "le", "issuer"}},
		{"issuer!=le", Position{Value, "le", "issuer"}},
		{"watts<=1", Position{Value, "1", "watts"}},
		{"issuer in (", Position{Value, "", "issuer"}},
		{"issuer in (a, b", Position{Value, "b", "issuer"}},
		{"host contains ex", Position{Value, "ex", "host"}},
		{`issuer="le t`, Position{Value, `"le t`, "issuer"}},
		{"team=a && issuer=x", Position{Value, "x", "issuer"}},
		{"issuer=x ", Position{AfterCondition, "", ""}},
		{"issuer=x &", Position{AfterCondition, "&", ""}},
		{"dangling() ", Position{AfterCondition, "", ""}},
		{"where(.spec.", Position{}},
		{`label("app=`, Position{}},
		{"condition=Ready/Tr", Position{Value, "Ready/Tr", "condition"}},
	}
	for _, tt := range tests {
		if got := PositionAt(tt.text); got != tt.want {
			t.Errorf("%q: %+v, want %+v", tt.text, got, tt.want)
		}
	}
}

func TestOperators(t *testing.T) {
	if plain, sorted := len(Operators(false)), len(Operators(true)); plain >= sorted {
		t.Errorf("%d operators, and %d of a sorted index", plain, sorted)
	}
}
