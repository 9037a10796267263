package capture

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/snapshot"
)

// acceptDiscovery requests aggregated discovery.
const acceptDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// server returns the available information about the cluster.
func (s *Saver) server(ctx context.Context) snapshot.Server {
	server := snapshot.Server{Host: s.Client.Get().AbsPath("/").URL().Host,
		Documents: map[string]json.RawMessage{}}
	if text, err := s.Client.Get().AbsPath("/version").DoRaw(ctx); err == nil && json.Valid(text) {
		server.Version = text
	}
	for _, path := range []string{"/api", "/apis"} {
		text, err := s.Client.Get().AbsPath(path).SetHeader("Accept", acceptDiscovery).DoRaw(ctx)
		var document metav1.TypeMeta
		if err == nil && json.Unmarshal(text, &document) == nil && document.Kind == "APIGroupDiscoveryList" {
			server.Documents[path] = text
		}
	}
	if len(server.Documents) < 2 {
		server.Documents = nil // one document without the other would hide types
	}
	var system metav1.PartialObjectMetadata
	text, err := s.Client.Get().AbsPath("/api/v1/namespaces/kube-system").SetHeader("Accept",
		acceptList).DoRaw(ctx)
	if err == nil && json.Unmarshal(text, &system) == nil {
		server.UID = string(system.UID)
	}
	return server
}
