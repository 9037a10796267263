package naming

import "testing"

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
