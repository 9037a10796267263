package dynamicinformer

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestMatchingNamespaces(t *testing.T) {
	for _, test := range []struct {
		include, except []string
		namespace       string
		want            bool
	}{
		{[]string{"team-*", "prod"}, nil, "team-a", true},
		{[]string{"team-*", "prod"}, nil, "prod", true},
		{[]string{"team-*", "prod"}, nil, "prod-eu", false},
		{[]string{"team-*", "prod"}, nil, "", false},
		{[]string{"team-*"}, []string{"*-sandbox"}, "team-a-sandbox", false},
		{[]string{"a*b*c"}, nil, "a-b-b-c", true},
		{[]string{"ab*ba"}, nil, "aba", false},
		{nil, []string{"kube-*"}, "kube-system", false},
		{nil, []string{"kube-*"}, "default", true},
		{nil, []string{"kube-*"}, "", true},
	} {
		n := MatchingNamespaces(test.include, test.except)
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": test.namespace}}}
		if got := n.filter()(u); got != test.want {
			t.Errorf("%s: %q: %v", n, test.namespace, got)
		}
		if n.limited() != (test.include != nil) || n.single() != "" || n.several() || n.validate() != nil {
			t.Errorf("%s: limited %v, single %q", n, n.limited(), n.single())
		}
	}
	a, b := MatchingNamespaces([]string{"b*", "a*"}, []string{"c"}), MatchingNamespaces([]string{"a*", "b*", "a*"}, []string{"c"})
	if a.String() != b.String() || a.String() == MatchingNamespaces([]string{"a*", "b*"}, nil).String() {
		t.Errorf("%s and %s", a, b)
	}
}
