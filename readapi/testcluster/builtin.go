package testcluster

import (
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/readapi"
)

// builtIn is a built-in type of a kube-apiserver.
type builtIn struct {
	group, version, plural, kind string
	shortNames                   string
	flags                        flags
	unsupportedSubresources      string // subresources
}

// flags describe how a built-in type is served and written.
type flags int

const (
	namespaced flags = 1 << iota
	inAll
	inExtensions
	hasStatus       // has the status subresource
	hasGeneration   // has a generation
	unconditional   // an update without a resource version is allowed
	createdByUpdate // an update creates a missing object
	anyName
)

// admissionGroup is the group of webhook configurations and admission policies.
const admissionGroup = "admissionregistration.k8s.io"

// admissionRejected is the reason why its objects cannot be written.
const admissionRejected = "nothing is admitted or mutated by webhooks and policies in a cluster in memory: leave them out, or use envtest"

// selectableFields are the fields for field selectors in addition to name and namespace.
var selectableFields = map[string]string{
	"pods":       ".spec.nodeName .spec.restartPolicy .spec.schedulerName .spec.serviceAccountName .status.phase .status.podIP .status.nominatedNodeName",
	"nodes":      ".spec.unschedulable",
	"namespaces": ".status.phase",
	"secrets":    ".type",
	"jobs":       ".status.successful",
	"events": ".involvedObject.kind .involvedObject.namespace .involvedObject.name .involvedObject.uid .involvedObject.apiVersion " +
		".involvedObject.resourceVersion .involvedObject.fieldPath .reason .reportingComponent .source .type",
	"certificatesigningrequests": ".spec.signerName",
}

func (b builtIn) has(f flags) bool { return b.flags&f != 0 }

// typeAndRules returns the type and the rules for writing its objects.
func (b builtIn) typeAndRules() (readapi.Type, apiserver.Rules) {
	version := readapi.Version{
		Name: b.version, UnsupportedSubresources: strings.Fields(b.unsupportedSubresources),
		SelectableFields: strings.Fields(selectableFields[b.plural]),
	}
	if b.has(hasStatus) {
		version.Subresources = []string{"status"}
	}
	names := crd.Names{Plural: b.plural, Kind: b.kind, ShortNames: strings.Fields(b.shortNames)}
	switch {
	case b.has(inAll):
		names.Categories = []string{"all"}
	case b.has(inExtensions):
		names.Categories = []string{"api-extensions"}
	}
	rules := apiserver.Rules{
		NoGeneration: !b.has(hasGeneration), UnconditionalUpdate: b.has(unconditional),
		CreateOnUpdate: b.has(createdByUpdate), AnyName: b.has(anyName),
		AnyFinalizer: b.group == "coordination.k8s.io",
	}
	if b.group == admissionGroup {
		rules.Refused = admissionRejected
	}
	return readapi.Type{
		Group: b.group, Names: names, Namespaced: b.has(namespaced), Versions: []readapi.Version{version},
	}, rules
}
