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
	"github.com/crdcache/crdcache/readapi"
)

// typesServer is an API server of many types on loopback, in this process: a kube-apiserver takes minutes to install as
// many definitions. It speaks TLS and HTTP/2 and compresses watch-lists, as a kube-apiserver does.
type typesServer struct {
	server          *http.Server
	dir, kubeconfig string
}

// streamsPerConnection is how many requests a kube-apiserver answers at once on a connection.
const streamsPerConnection = 100

// bookmarkInterval is how often each watch gets a bookmark, six times as often as from a kube-apiserver: while nothing
// happens these are all that a client has to do.
const bookmarkInterval = 10 * time.Second

// startTypesServer starts a server of some types with so many objects each. It ends with Stop.
func startTypesServer(types, perType int) (*typesServer, error) {
	storage, err := manyTypes(types, perType)
	if err != nil {
		return nil, err
	}
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	s := &typesServer{}
	if s.dir, err = os.MkdirTemp("", "types-"); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	s.kubeconfig = filepath.Join(s.dir, "kubeconfig")
	if err := writeTypesConfig(s.kubeconfig, "https://"+listener.Addr().String(), certificate); err != nil {
		return nil, errors.Join(err, listener.Close(), os.RemoveAll(s.dir))
	}
	s.server = &http.Server{
		Handler:   compressWatchLists(readapi.NewHandler(storage, readapi.HandlerOptions{BookmarkInterval: bookmarkInterval})),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: streamsPerConnection},
	}
	go func() { _ = s.server.ServeTLS(listener, "", "") }() // ends with Stop
	return s, nil
}

func writeTypesConfig(path, address string, certificate []byte) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["types"] = &clientcmdapi.Cluster{Server: address, CertificateAuthorityData: certificate}
	config.Contexts["types"] = &clientcmdapi.Context{Cluster: "types"}
	config.CurrentContext = "types"
	return clientcmd.WriteToFile(*config, path)
}

// Kubeconfig is the path of a file with the server's address.
func (s *typesServer) Kubeconfig() string { return s.kubeconfig }

// Stop ends the server and all connections to it.
func (s *typesServer) Stop() error {
	return errors.Join(s.server.Close(), os.RemoveAll(s.dir))
}

// manyTypes returns a storage of types with small objects.
func manyTypes(types, perType int) (*readapi.Storage, error) {
	storage := readapi.NewStorage(readapi.StorageOptions{Stamp: true})
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

// smallObject is some 300 bytes, as custom resources have at least.
func smallObject(apiVersion, kind string, n int) map[string]any {
	return map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"name": fmt.Sprintf("object-%02d", n), "namespace": fmt.Sprintf("team-%d", n%5)},
		"spec":     map[string]any{"class": "standard", "replicas": n},
		"status":   map[string]any{"ready": true},
	}
}
