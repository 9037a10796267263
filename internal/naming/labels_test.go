package naming

import (
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// TestMatcherIsTheSelector compares matchers of random selectors with the selectors.
func TestMatcherIsTheSelector(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	value := func() string { return pick("", "a", "b", "1", "2", "-3", "10") }
	operators := []selection.Operator{
		selection.In, selection.Equals, selection.DoubleEquals, selection.NotIn, selection.NotEquals,
		selection.Exists, selection.DoesNotExist, selection.GreaterThan, selection.LessThan,
	}
	requirement := func() labels.Requirement {
		for {
			values := make([]string, random.IntN(4))
			for i := range values {
				values[i] = value()
			}
			operator := operators[random.IntN(len(operators))]
			if r, err := labels.NewRequirement(pick("x", "y", "z"), operator, values); err == nil {
				return *r
			}
		}
	}
	matched := 0
	for range 20_000 {
		selector := labels.NewSelector()
		for range random.IntN(5) {
			selector = selector.Add(requirement())
		}
		set := labels.Set{}
		for range random.IntN(4) {
			set[pick("x", "y", "z")] = value()
		}
		want := selector.Matches(set)
		if got := CompileLabels(selector).Matches(set); got != want {
			t.Fatalf("%q matches %v: %v, want %v", selector, set, got, want)
		}
		if want {
			matched++
		}
	}
	if matched < 1000 {
		t.Errorf("only %d selectors match, want at least 1000", matched)
	}
	if CompileLabels(labels.Nothing()).Matches(labels.Set{}) {
		t.Error("labels.Nothing() matches, want no match")
	}
}

// FuzzKey verifies that keys are unique, because a key can be parsed into its name.
func FuzzKey(f *testing.F) {
	for _, name := range []string{"", "a", "a/b", "/", "..", " ", "a/", "/a"} {
		f.Add("", name)
		f.Add("web", name)
		f.Add(name, "a")
	}
	f.Fuzz(func(t *testing.T, namespace, name string) {
		want := cache.NewObjectName(namespace, name)
		key, ok := Key(want)
		got, err := cache.ParseObjectName(key)
		if ok != (err == nil && name != "" && got == want) {
			t.Errorf("Key(%q, %q) = %q, %v, which is parsed into %q, %v", namespace, name, key, ok, got, err)
		}
	})
}

// TestGuessPlural compares the guess with the built-in types and with kinds of public
// CustomResourceDefinitions.
func TestGuessPlural(t *testing.T) {
	plurals := map[string]string{
		"Gateway": "gateways", "VirtualGateway": "virtualgateways", "Relay": "relays", "APIKey": "apikeys",
		"Deploy": "deploys", "Proxy": "proxies", "BackendTLSPolicy": "backendtlspolicies", "ImageRepository": "imagerepositories",
		"Mesh": "meshes", "Elasticsearch": "elasticsearches", "Prometheus": "prometheuses", "DNS": "dnses",
		"Box": "boxes", "Kafka": "kafkas", "Istio": "istios", "HTTPRoute": "httproutes", "ReferenceGrant": "referencegrants",
		"ClusterClass": "clusterclasses", "IngressRouteTCP": "ingressroutetcps", "TLSStore": "tlsstores",
		"Patch": "patches", "Metadata": "metadata", "CiliumEndpoint": "ciliumendpoints",
	}
	for _, builtin := range BuiltinTypes {
		plurals[builtin.Kind] = builtin.Plural
	}
	for kind, want := range plurals {
		if got := GuessPlural(kind); got != want {
			t.Errorf("GuessPlural(%s) = %s, want %s", kind, got, want)
		}
	}
}

// FuzzCompareVersions compares CompareVersions with apimachinery's CompareResourceVersion.
func FuzzCompareVersions(f *testing.F) {
	for _, pair := range [][2]string{
		{"1", "1"}, {"9", "10"}, {"10", "9"}, {"0", "1"}, {"1", ""}, {"01", "1"}, {"-1", "1"}, {"newest",
			"1"}, {"184467440737095516160", "2"}, {"12", "21"},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		want, wantErr := resourceversion.CompareResourceVersion(a, b)
		got, err := CompareVersions(a, b)
		if got != want || (err == nil) != (wantErr == nil) {
			t.Errorf("CompareVersions(%q, %q) = %d, %v; want %d, %v", a, b, got, err, want, wantErr)
		}
		if older := err == nil && got < 0; IsOlder(a, b) != older {
			t.Errorf("IsOlder(%q, %q) = %v, want %v", a, b, !older, older)
		}
	})
}
