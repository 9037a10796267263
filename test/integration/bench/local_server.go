package main

import (
	"context"
	_ "embed"
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
	types, err := typesHandler(experiment.ClusterTypes, perType, ordinaryFormat)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	for n := range clusters {
		mux.Handle(experiment.ClusterPath(n)+"/", http.StripPrefix(experiment.ClusterPath(n), types))
	}
	return mux, nil
}

// The lines of a watch-list with an object, for an API version, a kind and numbers: one of about 300 bytes,
// the minimum of typical custom resources, or one of 2 KB with labels, managed fields and conditions.
var (
	//go:embed small.json.fmt
	smallFormat string
	//go:embed ordinary.json.fmt
	ordinaryFormat string
)

// typesHandler returns a server of many types, because a kube-apiserver needs minutes to install as many
// definitions.
func typesHandler(types, perType int, format string) (http.Handler, error) {
	mux := http.NewServeMux()
	_, err := addTypes(mux, experiment.TypesOf(types), perType, format)
	return mux, err
}

// addTypes adds types to a server, and returns the last one.
func addTypes(server *http.ServeMux, types []experiment.Type, perType int,
	format string) (last *syntheticAPI, err error) {
	for _, t := range types {
		var lines []byte
		for n := range perType {
			lines = fmt.Appendf(lines, format, t.GVR.GroupVersion(), t.Kind, n, n%5, n%40)
		}
		path := "/apis/" + t.GVR.Group + "/" + t.GVR.Version + "/" + t.GVR.Resource
		if last, err = newSyntheticAPI(lines, path, perType); err != nil {
			return nil, err
		}
		server.Handle(path, last)
	}
	return last, nil
}

// measureControllers measures a step with a type for each controller, and types that all of them watch. It
// updates one of these.
func (r *runner) measureControllers(ctx context.Context, step Step) (err error) {
	server, types := http.NewServeMux(), experiment.TypesOf(step.Objects+experiment.SharedTypes)
	_, err = addTypes(server, types[:step.Objects], step.PerType, smallFormat)
	if err == nil {
		r.api, err = addTypes(server, types[step.Objects:], step.Objects, smallFormat)
	}
	if err != nil {
		return err
	}
	defer func() { r.api = nil }()
	return r.measureLocally(ctx, step, server)
}
