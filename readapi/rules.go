package readapi

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rules are how clients write the objects of a type that a kube-apiserver has built in, where that differs
// from custom resources. The zero value is what holds for custom resources.
type Rules struct {
	// NoGeneration: objects of the type have no metadata.generation.
	NoGeneration bool
	// UnconditionalUpdate: an update without a resource version replaces whatever is there.
	UnconditionalUpdate bool
	// CreateOnUpdate: an update of what is not there creates it.
	CreateOnUpdate bool
	// AnyName: a name only has to be fit for a path, such as "system:node" of a role; otherwise it is a DNS
	// subdomain.
	AnyName bool
	// AnyFinalizer: finalizers need no domain, as with custom resources.
	AnyFinalizer bool
	// Refused is why clients cannot write objects of the type at all; empty: they can.
	Refused string
}

var (
	namespaces    = schema.GroupResource{Resource: "namespaces"}
	namespaceKind = schema.GroupKind{Kind: "Namespace"}
)
