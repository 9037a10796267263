package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
)

// newDiscoveryServer answers discovery with two groups that both have certificates.
func newDiscoveryServer() *httptest.Server {
	const apis = `{"kind":"APIGroupDiscoveryList","items":[
	  {"metadata":{"name":"cert-manager.io"},"versions":[{"version":"v1","resources":[
	    {"resource":"certificates","singularResource":"certificate","scope":"Namespaced","shortNames":["cert"],
	     "responseKind":{"group":"cert-manager.io","version":"v1","kind":"Certificate"},"verbs":["get","list","watch"]},
	    {"resource":"clusterissuers","singularResource":"clusterissuer","scope":"Cluster",
	     "responseKind":{"group":"cert-manager.io","version":"v1","kind":"ClusterIssuer"},"verbs":["get","list","watch"]}]}]},
	  {"metadata":{"name":"networking.internal.knative.dev"},"versions":[{"version":"v1alpha1","resources":[
	    {"resource":"certificates","singularResource":"certificate","scope":"Namespaced",
	     "responseKind":{"group":"networking.internal.knative.dev","version":"v1alpha1","kind":"Certificate"},"verbs":["get","list","watch"]}]}]}]}`
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		if r.URL.Path == "/apis" {
			fmt.Fprint(w, apis)
		} else {
			fmt.Fprint(w, `{"kind":"APIGroupDiscoveryList","items":[]}`)
		}
	}))
}

func ExampleClient_Resolve() {
	s := newDiscoveryServer()
	defer s.Close()
	client, err := discovery.NewClient(&rest.Config{Host: s.URL}, discovery.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"cert", "Certificate", "*.cert-manager.io", "certifcates.cert-manager.io"} {
		res, err := client.Resolve(context.Background(), name)
		var miss *discovery.NoMatchError
		if errors.As(err, &miss) {
			fmt.Println(name, "→ nothing, but there is", miss.Suggestions[0])
			continue
		}
		fmt.Println(name, "→", res.Resources, "or", res.Alternatives)
	}
	// Output:
	// cert → [certificates.v1.cert-manager.io] or []
	// Certificate → [certificates.v1.cert-manager.io] or [certificates.v1alpha1.networking.internal.knative.dev]
	// *.cert-manager.io → [certificates.v1.cert-manager.io clusterissuers.v1.cert-manager.io] or []
	// certifcates.cert-manager.io → nothing, but there is certificates.cert-manager.io
}

func ExampleParseName() {
	n, _ := discovery.ParseName("certificates.v1.cert-manager.io")
	for _, r := range n.Interpretations {
		fmt.Printf("%q in version %q of group %q\n", r.Resource, r.Version, r.Group)
	}
	_, err := discovery.ParseName("pods/log")
	fmt.Println(err)
	// Output:
	// "certificates" in version "v1" of group "cert-manager.io"
	// "certificates" in version "" of group "v1.cert-manager.io"
	// invalid resource name "pods/log": at byte 4: subresources and object names are not types: name the type alone
}
