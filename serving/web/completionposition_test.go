package web

import "testing"

func TestCompletionPosition(t *testing.T) {
	tests := []struct {
		text string
		want completionPosition
	}{
		{"", completionPosition{completeCondition, "", ""}},
		{"iss", completionPosition{completeCondition, "iss", ""}},
		{"team=a && iss", completionPosition{completeCondition, "iss", ""}},
		{"team=a, iss", completionPosition{completeCondition, "iss", ""}},
		{"!(iss", completionPosition{completeCondition, "iss", ""}},
		{"dangling(is", completionPosition{completeCondition, "dangling(is", ""}},
		{"issuer ", completionPosition{completeOperator, "", "issuer"}},
		{"issuer !", completionPosition{completeOperator, "!", "issuer"}},
		{"issuer con", completionPosition{completeOperator, "con", "issuer"}},
		{"team=a && issuer ", completionPosition{completeOperator, "", "issuer"}},
		{"issuer=", completionPosition{completeValue, "", "issuer"}},
		{"issuer = le", completionPosition{completeValue, "le", "issuer"}},
		{"issuer!=le", completionPosition{completeValue, "le", "issuer"}},
		{"watts<=1", completionPosition{completeValue, "1", "watts"}},
		{"issuer in (", completionPosition{completeValue, "", "issuer"}},
		{"issuer in (a, b", completionPosition{completeValue, "b", "issuer"}},
		{"host contains ex", completionPosition{completeValue, "ex", "host"}},
		{`issuer="le t`, completionPosition{completeValue, `"le t`, "issuer"}},
		{"team=a && issuer=x", completionPosition{completeValue, "x", "issuer"}},
		{"issuer=x ", completionPosition{completeConnective, "", ""}},
		{"issuer=x &", completionPosition{completeConnective, "&", ""}},
		{"dangling() ", completionPosition{completeConnective, "", ""}},
		{"where(.spec.", completionPosition{}},
		{`label("app=`, completionPosition{}},
		{"condition=Ready/Tr", completionPosition{completeValue, "Ready/Tr", "condition"}},
	}
	for _, tt := range tests {
		if got := positionAt(tt.text); got != tt.want {
			t.Errorf("positionAt(%q) = %+v, want %+v", tt.text, got, tt.want)
		}
	}
}
