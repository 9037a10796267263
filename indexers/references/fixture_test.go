package references_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/references"
)

const config = `apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: test}
spec:
  resources:
  - name: certs
    match: {group: cert-manager.io, kind: Certificate}
    references:
    - name: issuer
      to:
        group: cert-manager.io
        groupPath: .spec.issuerRef.group
        kind: Issuer
        kindPath: .spec.issuerRef.kind
        namePath: .spec.issuerRef.name
    - {name: secret, to: {group: "", resource: secrets, namePath: .spec.secretName}}
`

var (
	certificates = references.Type{Group: "cert-manager.io", Resource: "certificates", Kind: "Certificate",
		Namespaced: true}
	issuers        = references.Type{Group: "cert-manager.io", Resource: "issuers", Kind: "Issuer", Namespaced: true}
	clusterIssuers = references.Type{Group: "cert-manager.io", Resource: "clusterissuers",
		Kind: "ClusterIssuer"}
	secrets = references.Type{Resource: "secrets", Kind: "Secret", Namespaced: true}
)

func parseReferences(t testing.TB) []*indexers.Reference {
	t.Helper()
	c, err := indexers.Parse(indexers.Source{Name: "c.yaml", Data: []byte(config)})
	if err != nil {
		t.Fatal(err)
	}
	return c.Resources[0].References
}

// handlerCaller is an informer whose handler the test calls.
type handlerCaller struct {
	cache.ResourceEventHandlerRegistration
	handler    cache.ResourceEventHandler
	synced     chan struct{}
	failsToAdd bool
	removals   int
}

func newHandlerCaller() *handlerCaller { return &handlerCaller{synced: make(chan struct{})} }

func (h *handlerCaller) AddEventHandler(
	handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration,
	error) {
	if h.failsToAdd {
		return nil, errors.New("stopped")
	}
	h.handler = handler
	return h, nil
}

func (h *handlerCaller) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error {
	h.removals++
	return nil
}

func (h *handlerCaller) HasSyncedChecker() cache.DoneChecker { return h }
func (h *handlerCaller) Name() string                        { return "" }
func (h *handlerCaller) Done() <-chan struct{}               { return h.synced }

type m = map[string]any

// newObject returns an object of a type with the given .spec.
func newObject(typ references.Type, namespace, name, uid string, spec m) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: m{"apiVersion": "v1", "kind": typ.Kind,
		"metadata": m{"name": name, "uid": uid}, "spec": spec}}
	if typ.Group != "" {
		u.SetAPIVersion(typ.Group + "/v1")
	}
	if namespace != "" {
		u.SetNamespace(namespace)
	}
	return u
}

func withOwner(u *unstructured.Unstructured, typ references.Type, name,
	uid string) *unstructured.Unstructured {
	version := "v1"
	if typ.Group != "" {
		version = typ.Group + "/v1"
	}
	owners, _, _ := unstructured.NestedSlice(u.Object, "metadata", "ownerReferences")
	owners = append(owners, m{"apiVersion": version, "kind": typ.Kind, "name": name, "uid": uid})
	u.Object["metadata"].(m)["ownerReferences"] = owners
	return u
}
