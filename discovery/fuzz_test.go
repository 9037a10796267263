package discovery

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func FuzzParseName(f *testing.F) {
	for _, s := range []string{
		"certificates", "certificates.v1.cert-manager.io", "pods.v1.", "Certificate.cert-manager.io",
		"*", "*.*",
		"*.cert-manager.io", "*.*.knative.dev", "cert*.*", "all", "a..b", ".", "a/b",
		"cert-manager.io/v1", "a,b",
		"", "é", "a.b.", "v1", "certificates.v2", "*.v1.", "**.**", strings.Repeat("a.", 300),
	} {
		f.Add(s)
	}
	catalog := newCatalog(sampleGroups())
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseName(s)
		if err != nil {
			var bad *NameError
			if !errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > len(s) {
				t.Fatalf("ParseName(%q) = %v, want a NameError with an offset in the name", s, err)
			}
			return
		}
		if n.Raw != s || len(n.Interpretations) == 0 {
			t.Fatalf("ParseName(%q) = %+v, want interpretations and Raw", s, n)
		}
		res, err := catalog.ResolveName(n)
		var miss *NoMatchError
		if err != nil && !errors.As(err, &miss) {
			t.Fatalf("ResolveName(%q) = %v, want a NoMatchError", s, err)
		}
		if miss != nil && strings.Contains(miss.Error(), "\n") {
			t.Errorf("the error for %q has several lines", s)
		}
		for _, r := range res.Resources {
			if again, err := catalog.Resolve(r.String()); err != nil || again.Resources[0].GVR != r.GVR {
				t.Errorf("Resolve(%q) returned %s, but Resolve of this name = %v, %v", s, r, again.Resources,
					err)
			}
			if !n.HasWildcard() && !needsCoreDocument(n) && r.GVR.Group == "" {
				t.Errorf("%q is resolved to the core resource %s, but needsCoreDocument() = false", s, r)
			}
		}
	})
}

func FuzzDecodeDiscovery(f *testing.F) {
	f.Add([]byte(`{"items":[{"metadata":{"name":"a.io"},"versions":[{"version":"v1","freshness":"Stale","resources":[{"resource":"as","responseKind":{"kind":"A"},"verbs":["list"],"subresources":[{"subresource":"status"}]},{"resource":"as"},{"resource":"as","responseKind":{"kind":"A"}}]},{"version":"v1"},{}]},{"metadata":{"name":"a.io"}},{}]}`))
	f.Add([]byte(`{"groups":[{"name":"a","versions":[{"version":"v1"},{}],"preferredVersion":{"version":"v2"}}],"versions":["v1",""],"resources":[{"name":"a/b"},{"name":"/"},{"name":"x","kind":"X"}]}`))
	f.Add([]byte(`{"items":null,"groups":[null],"versions":null,"resources":[null]}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var all []group
		for _, decode := range []func([]byte) ([]group, error){decodeAggregated, decodeLegacyGroups,
			decodeLegacyVersions} {
			if groups, err := decode(data); err == nil {
				all = append(all, groups...)
			}
		}
		if resources, err := decodeLegacyResources(data); err == nil {
			all = append(all, group{Name: "legacy.io",
				Versions: []groupVersion{{Name: "v1", Resources: resources}}})
		}
		fillUnconfirmed(all, all)
		catalog := newCatalog(all)
		for _, r := range catalog.Resources() {
			if got, ok := catalog.Lookup(r.GVR); !ok || got.GVK != r.GVK {
				t.Errorf("Lookup(%s) = %v, %v, want the listed resource", r, got, ok)
			}
			if len(r.ServedVersions) == 0 || r.Singular == "" && r.GVK.Kind != "" {
				t.Errorf("the resource %+v is incomplete", r)
			}
		}
		_, _ = catalog.Resolve("*")
		_, _ = catalog.Resolve("nothing.a.io")
		s := newTypeState(DefaultDiscoveryLag)
		s.setCRDsForbidden(startTime)
		events, _ := s.applyCatalog(catalog)
		for _, e := range events {
			if e.Type.GroupResource == (schema.GroupResource{}) {
				t.Errorf("an event without a type: %+v", e)
			}
		}
	})
}

// TestDocumentsOfAnotherKind verifies that another document is not decoded as an empty one, because all types
// would then be lost.
func TestDocumentsOfAnotherKind(t *testing.T) {
	documents := map[string]func([]byte) error{
		`{"kind":"APIGroupDiscoveryList","items":[]}`: func(b []byte) error { _, err := decodeAggregated(b); return err },
		`{"kind":"APIGroupList","groups":[]}`:         func(b []byte) error { _, err := decodeLegacyGroups(b); return err },
		`{"kind":"APIVersions","versions":[]}`:        func(b []byte) error { _, err := decodeLegacyVersions(b); return err },
		`{"kind":"APIResourceList","resources":[]}`:   func(b []byte) error { _, err := decodeLegacyResources(b); return err },
	}
	for own, decode := range documents {
		for other := range documents {
			if err := decode([]byte(other)); (err == nil) != (other == own) {
				t.Errorf("the decoder of %s decodes %s with the error %v", own, other, err)
			}
		}
		for _, body := range []string{`null`, `{}`, `{"kind":"Status","apiVersion":"v1"}`} {
			if decode([]byte(body)) == nil {
				t.Errorf("the decoder of %s decodes %s, want an error", own, body)
			}
		}
	}
}

// TestAggregatedDocumentOfAnotherKind verifies that another document is not decoded as an empty one, because
// informers would then delete all objects.
func TestAggregatedDocumentOfAnotherKind(t *testing.T) {
	for _, body := range []string{`null`, `{}`, `{"kind":"Status","apiVersion":"v1"}`,
		`{"kind":"APIGroupList","groups":[]}`} {
		if groups, err := decodeAggregated([]byte(body)); err == nil {
			t.Errorf("decodeAggregated(%s) = %v, want an error", body, groups)
		}
	}
	if _, err := decodeAggregated([]byte(`{"kind":"APIGroupDiscoveryList","items":[]}`)); err != nil {
		t.Errorf("decodeAggregated() of an empty document = %v", err)
	}
}
