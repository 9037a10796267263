package follow

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

func TestRunnable(t *testing.T) {
	type options struct {
		versions   Versions
		namespaces Namespaces
	}
	installed := typeState{complete: true, exists: true, Type: typesource.Type{
		Established: true, Versions: []string{"v1"}, Unlistable: []string{"v2"}, ListOnly: []string{"v0"},
	}}
	with := func(change func(*typeState)) typeState { k := installed; change(&k); return k }
	unknown := map[schema.GroupVersion]error{{Group: "example.com", Version: "v4"}: errors.New("stale")}
	failed := with(func(k *typeState) { k.unknown = unknown })
	in := func(n Namespaces) options { return options{namespaces: n} }
	by := func(v Versions) options { return options{versions: v} }
	several := with(func(k *typeState) { k.Versions, k.Unlistable = []string{"v3", "v1"}, []string{"v2"} })
	tests := []struct {
		name      string
		known     typeState
		requested string
		options   options
		version   string
		want      status.Reason
	}{
		{"cluster-scoped in a factory for all namespaces", installed, "v1", in(Namespaces{}), "v1",
			status.ReasonNone},
		{"cluster-scoped in a factory for one", installed, "v1", in(OnlyNamespaces("x")), "",
			status.ReasonScopeConflict},
		{"cluster-scoped in all but one", installed, "v1", in(AllNamespacesExcept("x")), "v1", status.ReasonNone},
		{"namespaced in a factory for one", with(func(k *typeState) { k.Namespaced = true }), "v1",
			in(OnlyNamespaces("x")), "v1", status.ReasonNone},
		{"not watchable", installed, "v0", in(Namespaces{}), "v0", status.ReasonNone},
		{"not listable", installed, "v2", in(Namespaces{}), "", status.ReasonVerbUnsupported},
		{"not served", installed, "v3", in(Namespaces{}), "", status.ReasonVersionNotServed},
		{"not established", with(func(k *typeState) { k.Established = false }), "v1", in(Namespaces{}), "",
			status.ReasonNotEstablished},
		{"absent", typeState{complete: true}, "v1", in(Namespaces{}), "", status.ReasonNotInstalled},
		{"not known", typeState{}, "v1", in(Namespaces{}), "", status.ReasonTypesUnknown},
		{"absent, and the version is unknown", typeState{complete: true, unknown: unknown}, "v4",
			in(Namespaces{}), "", status.ReasonGroupUnknown},
		{"absent, and another version is unknown", typeState{complete: true, unknown: unknown}, "v1",
			in(Namespaces{}), "", status.ReasonNotInstalled},
		{"absent, and any version may be there", typeState{complete: true, unknown: unknown}, "",
			by(PreferredVersion()), "", status.ReasonGroupUnknown},
		{"not served, and the version is unknown", failed, "v4", in(Namespaces{}), "",
			status.ReasonGroupUnknown},
		{"served, and another version is unknown", failed, "v1", in(Namespaces{}), "v1", status.ReasonNone},
		{"none of the order, and one is unknown", failed, "v1", by(OrderedVersions("v5", "v4")), "",
			status.ReasonGroupUnknown},
		{"the preferred version", several, "v1", by(PreferredVersion()), "v3", status.ReasonNone},
		{"the preferred version of those that can be listed", with(func(k *typeState) { k.Versions = nil }),
			"", by(PreferredVersion()), "v0", status.ReasonNone},
		{"none can be listed", with(func(k *typeState) { k.Versions, k.ListOnly = nil, nil }),
			"", by(PreferredVersion()), "", status.ReasonVerbUnsupported},
		{"no version at all", with(func(k *typeState) { k.Type = typesource.Type{Established: true} }), "v1",
			by(PreferredVersion()), "", status.ReasonVersionNotServed},
		{"the first in order", several, "", by(OrderedVersions("v4", "v2", "v1", "v3")), "v1", status.ReasonNone},
		{"none of the order", several, "v1", by(OrderedVersions("v4", "v5")), "", status.ReasonVersionNotServed},
		{"the first in order that can be watched", installed, "", by(OrderedVersions("v0", "v1")), "v1", status.ReasonNone},
		{"the order can't be listed", several, "v1", by(OrderedVersions("v4", "v2")), "",
			status.ReasonVerbUnsupported},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			version, got, _ := test.known.versionToFollow(schema.GroupVersionResource{Group: "example.com",
				Version: test.requested}, test.options.versions, test.options.namespaces)
			if got != test.want || version != test.version {
				t.Errorf("versionToFollow() = %q, %q; want %q, %q", version, got, test.version, test.want)
			}
		})
	}
}
