package discovery

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func resourceTexts(resources []Resource) []string {
	var out []string
	for _, r := range resources {
		out = append(out, r.String())
	}
	return out
}

func TestResolve(t *testing.T) {
	c := newCatalog(sampleGroups())
	const cert = "certificates.v1.cert-manager.io"
	const kcert = "certificates.v1alpha1.networking.internal.knative.dev"
	tests := map[string]struct {
		reason       string
		want         []string
		alternatives []string
	}{
		"pods":     {reason: "plural", want: []string{"pods.v1."}},
		"PODS":     {reason: "names are matched in lower case, as kubectl does", want: []string{"pods.v1."}},
		"pods.v1.": {reason: "an empty group is any group, the core one first", want: []string{"pods.v1."}},
		"certificates": {reason: "the first group wins", want: []string{cert},
			alternatives: []string{kcert}},
		cert: {reason: "full name", want: []string{cert}},
		"storageclass.storage": {reason: "group cut short",
			want: []string{"storageclasses.v1.storage.k8s.io"}},
		"csistoragecapacities": {reason: "only in a version that is not preferred",
			want: []string{"csistoragecapacities.v1beta1.storage.k8s.io"}},
		"svc": {reason: "short name in two groups",
			want:         []string{"services.v1."},
			alternatives: []string{"servers.v1alpha1.networking.internal.knative.dev"}},
		"bindings":     {reason: "a plain name resolves whatever the verbs", want: []string{"bindings.v1."}},
		"cert-manager": {reason: "category", want: []string{cert, "clusterissuers.v1.cert-manager.io"}},
		"all":          {reason: "category", want: []string{"pods.v1.", "services.v1.", "deployments.v1.apps"}},
		"*.cert-manager.io": {reason: "wildcard, preferred versions",
			want: []string{cert, "clusterissuers.v1.cert-manager.io"}},
		"*.v1alpha2.cert-manager.io": {reason: "wildcard in a version",
			want: []string{"certificates.v1alpha2.cert-manager.io"}},
		"*.*.knative.dev": {reason: "group pattern",
			want: []string{kcert, "servers.v1alpha1.networking.internal.knative.dev"}},
		"cert*":          {reason: "resource pattern", want: []string{cert, kcert}},
		"certificates.*": {reason: "one name in every group", want: []string{cert, kcert}},
		"clusterissuers.*.cert-manager.io": {reason: "any version",
			want: []string{"clusterissuers.v1.cert-manager.io"}},
		"certificates.v1.networking.interna": {reason: "no such version there", want: nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := c.Resolve(name)
			var miss *NoMatchError
			if tt.want == nil && !errors.As(err, &miss) {
				t.Fatalf("%s: got %v, %v, want a *NoMatchError", tt.reason, resourceTexts(got.Resources), err)
			}
			if tt.want != nil && err != nil {
				t.Fatalf("%s: Resolve: %v", tt.reason, err)
			}
			if diff := cmp.Diff(tt.want, resourceTexts(got.Resources)); diff != "" {
				t.Errorf("%s: resources (-want +got):\n%s", tt.reason, diff)
			}
			if diff := cmp.Diff(tt.alternatives, resourceTexts(got.Alternatives)); diff != "" {
				t.Errorf("%s: alternatives (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestNoMatch(t *testing.T) {
	groups := sampleGroups()
	groups[3].Versions[1].Failure = "503"
	c := newCatalog(groups)
	tests := map[string]struct {
		suggestion string // the first suggestion
		unknown    int
	}{
		"certifcates":                   {suggestion: "certificates.cert-manager.io", unknown: 1},
		"deploymnets":                   {suggestion: "deployments.apps", unknown: 1},
		"certif":                        {suggestion: "certificates.cert-manager.io", unknown: 1},
		"certificates.certmanager.io":   {suggestion: "certificates.cert-manager.io"},
		"certificates.v2":               {suggestion: "certificates.cert-manager.io"},
		"certificates.entirely.wrong":   {suggestion: "certificates.cert-manager.io"},
		"*.certmanager.io":              {suggestion: "*.cert-manager.io"},
		"cert-manger":                   {suggestion: "cert-manager", unknown: 1},
		"storageclass.v9.storag.k8s.io": {suggestion: "storageclasses.storage.k8s.io"},
		"volumes.storage.k8s.io":        {unknown: 1},
		"xyzzyxyzzy":                    {unknown: 1},
		"xyz*.storage.k8s.io":           {unknown: 1}, // the input is not suggested
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := c.Resolve(name)
			var noMatchErr *NoMatchError
			if !errors.As(err, &noMatchErr) {
				t.Fatalf("Resolve(%q) = %v, want a *NoMatchError", name, err)
			}
			var first string
			if len(noMatchErr.Suggestions) > 0 {
				first = noMatchErr.Suggestions[0]
			}
			if first != tt.suggestion || len(noMatchErr.Suggestions) > maxSuggestions {
				t.Errorf("suggestions = %v, want %q first", noMatchErr.Suggestions, tt.suggestion)
			}
			if len(noMatchErr.FailedGroupVersions) != tt.unknown {
				t.Errorf("FailedGroupVersions = %v, want %d", noMatchErr.FailedGroupVersions, tt.unknown)
			}
		})
	}
}

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
