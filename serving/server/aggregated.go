package server

import (
	"encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

// With an APIService for this group version, the API server proxies requests to crdcached. Clients append
// aggregatedPrefix to the address of the API server. The API server authenticates users and forwards their
// names. crdcached authorizes forwarded and direct requests alike.
const (
	aggregatedVersion = "cache.crdcache.dev/v1"
	aggregatedPath    = "/apis/" + aggregatedVersion
	// The API server does not limit the duration of requests with "proxy" after the version.
	aggregatedPrefix = aggregatedPath + "/proxy"
)

// stripAggregatedPrefix makes a forwarded request equal to a direct request. It must precede authorization.
// It does not forward requests for the page, because the links of the page lack the prefix.
func stripAggregatedPrefix(next http.Handler) http.Handler {
	stripped := http.StripPrefix(aggregatedPrefix, next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(r.URL.Path, aggregatedPrefix)
		switch {
		case !strings.HasPrefix(r.URL.Path, aggregatedPrefix+"/"):
			next.ServeHTTP(w, r)
		case isPage(path):
			http.NotFound(w, r)
		default:
			stripped.ServeHTTP(w, r)
		}
	})
}

// isAggregator reports whether the API server itself sends a request. It requests the discovery and OpenAPI
// documents of aggregated servers and merges them into its own. crdcached must not answer, because its
// documents are copies of the API server's.
func isAggregator(user user.Info) bool {
	return user.GetName() == "system:kube-aggregator" || user.GetName() == "system:aggregator"
}

// serveAggregatedGroup serves an empty list of resources.
func serveAggregatedGroup(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	// An error means that the client has disconnected.
	_ = json.NewEncoder(w).Encode(&metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: aggregatedVersion, APIResources: []metav1.APIResource{},
	})
}
