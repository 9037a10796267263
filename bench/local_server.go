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

	"github.com/crdcache/crdcache/bench/internal/experiment"
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

// typesHandler returns a server of many types, because a kube-apiserver needs minutes to install as many
// definitions.
func typesHandler(types, perType int) (http.Handler, error) {
	mux := http.NewServeMux()
	for _, t := range experiment.TypesOf(types) {
		var lines []byte
		for n := range perType {
			object, err := json.Marshal(map[string]any{"type": "ADDED",
				"object": smallObject(t.GVR.GroupVersion().String(), t.Kind, n)})
			if err != nil {
				return nil, err
			}
			lines = append(append(lines, object...), '\n')
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
