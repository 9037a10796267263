package main

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdcache/crdcache/test/integration/bench/internal/experiment"
)

// localServer is an API server on loopback in this process, so that its cost is not measured. It uses TLS and
// HTTP/2 like a kube-apiserver.
type localServer struct {
	server     *httptest.Server
	kubeconfig string // path of a file with the server's address
}

// startLocalServer starts a server for handler. Stop ends it.
func startLocalServer(handler http.Handler) (*localServer, error) {
	dir, err := os.MkdirTemp("", "server-")
	if err != nil {
		return nil, err
	}
	s := &localServer{server: httptest.NewUnstartedServer(handler), kubeconfig: filepath.Join(dir, "kubeconfig")}
	s.server.EnableHTTP2 = true
	s.server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 100} // like a kube-apiserver
	s.server.StartTLS()
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: s.server.URL, CertificateAuthorityData: pem.
		EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local"}
	config.CurrentContext = "local"
	if err := clientcmd.WriteToFile(*config, s.kubeconfig); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Stop ends the server and all its connections.
func (s *localServer) Stop() error {
	s.server.CloseClientConnections()
	s.server.Close()
	return os.RemoveAll(filepath.Dir(s.kubeconfig))
}

// clustersHandler returns a server with many clusters of equal content, each below its own path.
func clustersHandler(clusters, perType int) (http.Handler, error) {
	types, err := typesHandler(experiment.ClusterTypes, perType, ordinaryObject)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for n := range clusters {
		mux.Handle(experiment.ClusterPath(n)+"/", http.StripPrefix(experiment.ClusterPath(n), types))
	}
	return mux, nil
}

// typesHandler returns a server of many types, because a kube-apiserver needs minutes to install as many
// definitions.
func typesHandler(types, perType int, object func(apiVersion, kind string, n int) map[string]any) (
	http.Handler, error) {
	mux := http.NewServeMux()
	for _, t := range experiment.TypesOf(types) {
		var lines []byte
		for n := range perType {
			event, err := json.Marshal(map[string]any{"type": "ADDED",
				"object": object(t.GVR.GroupVersion().String(), t.Kind, n)})
			if err != nil {
				return nil, err
			}
			lines = append(append(lines, event...), '\n')
		}
		path := "/apis/" + t.GVR.Group + "/" + t.GVR.Version + "/" + t.GVR.Resource
		api, err := newSyntheticAPI(lines, path, perType)
		if err != nil {
			return nil, err
		}
		mux.Handle(path, api)
	}
	return mux, nil
}

// smallObject returns an object of about 300 bytes, the minimum of typical custom resources.
func smallObject(apiVersion, kind string, n int) map[string]any {
	return map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{
			"name": fmt.Sprintf("object-%06d", n), "namespace": fmt.Sprintf("team-%d", n%5),
			"uid": fmt.Sprintf("00000000-0000-4000-8000-%012d", n), "resourceVersion": "1", "generation": 1,
		},
		"spec":   map[string]any{"class": "standard", "replicas": n},
		"status": map[string]any{"ready": true},
	}
}

// ordinaryObject returns an object of about 2 KB, with labels, managed fields and conditions.
func ordinaryObject(apiVersion, kind string, n int) map[string]any {
	object := smallObject(apiVersion, kind, n)
	metadata := object["metadata"].(map[string]any)
	metadata["labels"] = map[string]any{"app.kubernetes.io/name": fmt.Sprintf("service-%d", n%40),
		"app.kubernetes.io/managed-by": "helm", "team": fmt.Sprintf("team-%d", n%5)}
	metadata["annotations"] = map[string]any{"meta.helm.sh/release-name": fmt.Sprintf("release-%d", n%40),
		"meta.helm.sh/release-namespace": "default"}
	metadata["ownerReferences"] = []any{map[string]any{"apiVersion": "example.com/v1", "kind": "Release",
		"name": fmt.Sprintf("release-%d", n%40), "uid": fmt.Sprintf("10000000-0000-4000-8000-%012d", n%40)}}
	fields := map[string]any{
		"f:spec":   map[string]any{"f:class": map[string]any{}, "f:replicas": map[string]any{}},
		"f:status": map[string]any{"f:ready": map[string]any{}, "f:conditions": map[string]any{}}}
	metadata["managedFields"] = []any{
		map[string]any{"manager": "helm", "operation": "Update", "apiVersion": apiVersion,
			"fieldsType": "FieldsV1", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields},
		map[string]any{"manager": "controller", "operation": "Update", "apiVersion": apiVersion,
			"fieldsType": "FieldsV1", "subresource": "status", "time": "2026-01-02T00:00:00Z",
			"fieldsV1": fields}}
	object["spec"] = map[string]any{"class": "standard", "replicas": n,
		"image": fmt.Sprintf("registry.example.com/team/service-%d:1.%d.0", n%40, n),
		"env": []any{map[string]any{"name": "MODE", "value": "production"},
			map[string]any{"name": "REGION", "value": "eu-1"}}}
	object["status"] = map[string]any{"ready": true, "observedGeneration": 1, "conditions": []any{
		map[string]any{"type": "Ready", "status": "True", "reason": "Available",
			"message": "all replicas are available", "lastTransitionTime": "2026-01-02T03:04:05Z"},
		map[string]any{"type": "Progressing", "status": "False", "reason": "Complete",
			"message":            fmt.Sprintf("revision %d is complete", n),
			"lastTransitionTime": "2026-01-02T03:04:05Z"}}}
	return object
}
