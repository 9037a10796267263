package testcluster

import (
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/builtin"
	"github.com/crdcache/crdcache/readapi"
)

// admissionGroup is the group of webhook configurations and admission policies.
const admissionGroup = "admissionregistration.k8s.io"

// admissionRejected is the reason why its objects cannot be written.
const admissionRejected = "nothing is admitted or mutated by webhooks and policies in a cluster in memory: leave them out, or use envtest"

// typeAndRules returns a built-in type and the rules for writing its objects.
func typeAndRules(b builtin.Type) (readapi.Type, apiserver.Rules) {
	version := readapi.Version{
		Name: b.Version, UnsupportedSubresources: b.Subresources(), SelectableFields: b.SelectableFields(),
	}
	if b.Has(builtin.HasStatus) {
		version.Subresources = []string{"status"}
	}
	rules := apiserver.Rules{
		NoGeneration: !b.Has(builtin.HasGeneration), UnconditionalUpdate: b.Has(builtin.Unconditional),
		CreateOnUpdate: b.Has(builtin.CreatedByUpdate), AnyName: b.Has(builtin.AnyName),
		AnyFinalizer: b.Group == "coordination.k8s.io",
	}
	if b.Group == admissionGroup {
		rules.Refused = admissionRejected
	}
	return readapi.Type{
		Group: b.Group, Namespaced: b.Has(builtin.Namespaced), Versions: []readapi.Version{version},
		Names: crd.Names{Plural: b.Plural, Kind: b.Kind, ShortNames: b.ShortNames(),
			Categories: b.Categories()},
	}, rules
}
