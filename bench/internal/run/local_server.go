package run

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
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
