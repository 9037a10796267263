package references_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/references"
)

// A certificate refers to an issuer that does not exist until later.
func Example() {
	config, err := indexers.Parse(indexers.Source{Name: "indexes.yaml", Data: []byte(`
apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: example}
spec:
  resources:
  - name: certs
    match: {group: cert-manager.io, kind: Certificate}
    references:
    - {name: issuer, to: {group: cert-manager.io, kind: Issuer, namePath: .spec.issuerRef.name}}
`)})
	if err != nil {
		panic(err)
	}
	graph := references.New()
	defer graph.Close()
	certificates, issuers := newHandlerCaller(), newHandlerCaller() // they replace two informers
	for _, m := range []references.InformerSource{
		{Type: references.Type{Group: "cert-manager.io", Resource: "certificates", Kind: "Certificate",
			Namespaced: true}, References: config.Resources[0].References, Informer: certificates},
		{Type: references.Type{Group: "cert-manager.io", Resource: "issuers", Kind: "Issuer",
			Namespaced: true}, Informer: issuers},
	} {
		if _, err := graph.Add(m); err != nil {
			panic(err)
		}
	}
	close(certificates.synced)
	close(issuers.synced)
	newObject := func(name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "prod", "name": name}, "spec": spec}}
	}
	certificates.handler.OnAdd(newObject("shop",
		map[string]any{"issuerRef": map[string]any{"name": "ca"}}), false)
	waitForSync(graph)
	for _, r := range graph.Dangling() {
		fmt.Println(r)
	}
	var handler cache.ResourceEventHandler = issuers.handler
	handler.OnAdd(newObject("ca", nil), false)
	ca := references.Object{Group: "cert-manager.io", Kind: "Issuer", Namespace: "prod", Name: "ca"}
	fmt.Println(graph.Stats().Dangling, graph.To(ca))
	// Output:
	// Certificate.cert-manager.io prod/shop issuer → Issuer.cert-manager.io prod/ca (dangling)
	// 0 [Certificate.cert-manager.io prod/shop issuer → Issuer.cert-manager.io prod/ca]
}
