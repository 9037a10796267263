package follow

import (
	"testing"

	"github.com/crdcache/crdcache/dynamicinformer/typesource"
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
		n := NamespacesMatching(test.include, test.except)
		u := &unstructured.Unstructured{
			Object: map[string]any{"metadata": map[string]any{"namespace": test.namespace}}}
		if got := n.Filter()(u); got != test.want {
			t.Errorf("%s: Filter() of namespace %q = %v, want %v", n, test.namespace, got, test.want)
		}
		if got, want := n.IsLimited(), test.include != nil; got != want {
			t.Errorf("%s: IsLimited() = %v, want %v", n, got, want)
		}
		if got := n.requested(); len(got) != 1 {
			t.Errorf("%s: requested() = %q, want one namespace", n, got)
		}
		if err := n.Validate(); err != nil {
			t.Errorf("%s: Validate() = %v, want no error", n, err)
		}
	}
	a, b := NamespacesMatching([]string{"b*", "a*"}, []string{"c"}), NamespacesMatching([]string{"a*", "b*", "a*"}, []string{"c"})
	if a.String() != b.String() || a.String() == NamespacesMatching([]string{"a*", "b*"}, nil).String() {
		t.Errorf("String() depends on the order, or ignores the exception: %s and %s", a, b)
	}
}

func TestCanFollowSeparately(t *testing.T) {
	namespaced, clusterScoped := typeState{exists: true, Type: typesource.Type{Namespaced: true}},
		typeState{exists: true}
	teams := NamespacesMatching([]string{"prod", "team-*"}, []string{"team-sandbox"})
	for _, test := range []struct {
		namespaces Namespaces
		known      typeState
		want       bool
	}{
		{AllNamespaces(), namespaced, false},
		{OnlyNamespaces("a", "b"), namespaced, false},
		{teams, typeState{}, true},
		{NamespacesMatching(nil, []string{"kube-*"}), namespaced, true},
		{NamespacesMatching(nil, []string{"kube-*"}), clusterScoped, false},
		{AllNamespacesExcept("kube-system"), namespaced, true},
		{AllNamespacesExcept("kube-system"), typeState{}, false},
	} {
		if got := test.namespaces.canFollowSeparately(&test.known); got != test.want {
			t.Errorf("canFollowSeparately() of %s with %+v = %v, want %v", test.namespaces, test.known, got,
				test.want)
		}
	}
}

func TestNamespacesString(t *testing.T) {
	for want, n := range map[string]Namespaces{
		"all": AllNamespaces(), "in a,b": OnlyNamespaces("b", "a", "b"), "except c": AllNamespacesExcept("c"),
		"matching a-*,b": NamespacesMatching([]string{"b", "a-*"}, nil), "not matching kube-*": NamespacesMatching(nil,
			[]string{"kube-*"}),
		"matching a-* except a-b": NamespacesMatching([]string{"a-*"}, []string{"a-b"}),
	} {
		if got := n.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
	if got := (Namespaces{}).String(); got != "all" {
		t.Errorf("String() of the zero value = %q, want all", got)
	}
	if got := NamespacesMatching(nil, nil); got.String() != "all" || got.Key() == AllNamespaces().Key() {
		t.Errorf("Matching(nil, nil) = %q, want all, with another key than All()", got)
	}
}
