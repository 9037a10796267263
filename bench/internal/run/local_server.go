package run

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/readapi"
)

// localServer is an API server on loopback in this process, so that its cost is not measured. It uses TLS and
// HTTP/2 like a kube-apiserver.
type localServer struct {
	server          *http.Server
	dir, kubeconfig string
}

// streamsPerConnection is a kube-apiserver's limit of concurrent requests on a connection.
const streamsPerConnection = 100

// startLocalServer starts a server for handler. Stop ends it.
func startLocalServer(handler http.Handler) (*localServer, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1",
		[]net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	s := &localServer{}
	if s.dir, err = os.MkdirTemp("", "server-"); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	s.kubeconfig = filepath.Join(s.dir, "kubeconfig")
	if err := writeLocalConfig(s.kubeconfig, "https://"+listener.Addr().String(), certificate); err != nil {
		return nil, errors.Join(err, listener.Close(), os.RemoveAll(s.dir))
	}
	s.server = &http.Server{
		Handler:   handler,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: streamsPerConnection},
	}
	go func() { _ = s.server.ServeTLS(listener, "", "") }() // ends with Stop
	return s, nil
}

func writeLocalConfig(path, address string, certificate []byte) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["local"] = &clientcmdapi.Cluster{Server: address, CertificateAuthorityData: certificate}
	config.Contexts["local"] = &clientcmdapi.Context{Cluster: "local"}
	config.CurrentContext = "local"
	return clientcmd.WriteToFile(*config, path)
}

// Kubeconfig returns the path of a file with the server's address.
func (s *localServer) Kubeconfig() string { return s.kubeconfig }

// Stop ends the server and all its connections.
func (s *localServer) Stop() error {
	return errors.Join(s.server.Close(), os.RemoveAll(s.dir))
}

// bookmarkInterval is the interval of bookmarks on each watch. It is a sixth of a kube-apiserver's, because
// bookmarks are the only work of idle clients.
const bookmarkInterval = 10 * time.Second

// startTypesServer starts an API server with many types, because a kube-apiserver needs minutes to install as
// many definitions. It compresses watch-lists like a kube-apiserver. Stop ends it.
func startTypesServer(types, perType int) (*localServer, error) {
	storage, err := manyTypes(types, perType)
	if err != nil {
		return nil, err
	}
	return startLocalServer(compressWatchLists(readapi.NewHandler(storage,
		readapi.HandlerOptions{BookmarkInterval: bookmarkInterval})))
}

// manyTypes returns a storage of types with small objects.
func manyTypes(types, perType int) (*apiserver.Storage, error) {
	storage := apiserver.NewStorage(apiserver.StorageOptions{Stamp: true})
	for _, t := range experiment.TypesOf(types) {
		err := storage.SetType(readapi.Type{
			Group: t.GVR.Group, Names: crd.Names{Plural: t.GVR.Resource, Kind: t.Kind}, Namespaced: true,
			Versions: []readapi.Version{{Name: t.GVR.Version}},
		})
		if err != nil {
			return nil, err
		}
		for n := range perType {
			object, err := json.Marshal(smallObject(t.GVR.GroupVersion().String(), t.Kind, n))
			if err != nil {
				return nil, err
			}
			if _, err := storage.ApplyJSON(object); err != nil {
				return nil, err
			}
		}
	}
	return storage, nil
}

// smallObject returns an object of about 300 bytes, the minimum of typical custom resources.
func smallObject(apiVersion, kind string, n int) map[string]any {
	return map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"name": fmt.Sprintf("object-%02d", n),
			"namespace": fmt.Sprintf("team-%d", n%5)},
		"spec":   map[string]any{"class": "standard", "replicas": n},
		"status": map[string]any{"ready": true},
	}
}
