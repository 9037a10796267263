package serve

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/serving/readapi"
)

// filesAPI is the read API of files on a loopback address, for which there is a kubeconfig.
type filesAPI struct {
	listener net.Listener
	config   rest.Config
	// identity is that of clients with the kubeconfig. No other process has it.
	identity string
	path     string // of the kubeconfig
}

// newFilesAPI listens and writes the kubeconfig.
func newFilesAPI(ctx context.Context, path string) (*filesAPI, error) {
	loopback := net.IPv4(127, 0, 0, 1)
	certificate, key, err := cert.GenerateSelfSignedCertKey(loopback.String(), []net.IP{loopback}, nil)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	// Without TLS, clients would not send the token.
	listener, err := tls.Listen("tcp", net.JoinHostPort(loopback.String(), "0"),
		&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return nil, fmt.Errorf("listen for clients of the kubeconfig: %w", err)
	}
	a := &filesAPI{listener: listener, path: path, config: rest.Config{
		Host: "https://" + listener.Addr().String(), BearerToken: rand.Text(),
		TLSClientConfig: rest.TLSClientConfig{CAData: certificate}}}
	if a.identity, _, err = localserver.Identity(ctx, &a.config); err == nil {
		err = writeKubeconfig(path, &a.config)
	}
	if err != nil {
		listener.Close()
		return nil, err
	}
	return a, nil
}

func (a *filesAPI) close() {
	a.listener.Close()
	os.Remove(a.path)
	os.RemoveAll(localserver.SocketDirFor(a.identity).Dir)
}

// serveAPI serves the read API until ctx ends.
func (o *verb) serveAPI(ctx context.Context, activity *localserver.ActiveRequests) error {
	page := &localserver.Page{Listener: o.api.listener,
		Handler: WithToken(o.api.config.BearerToken, o.FilesHandler())}
	return localserver.ServePage(ctx, page, activity, func() {
		fmt.Fprintf(o.ErrOut, "serving %s; try KUBECONFIG=%s kubectl get all -A\n", o.FilesTitle(), o.api.path)
	})
}

// WithToken refuses requests without the bearer token: other users can connect to the port, too.
func WithToken(token string, next http.Handler) http.Handler {
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			readapi.WriteError(w, r, apierrors.NewUnauthorized("Unauthorized"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// writeKubeconfig writes a new file that only the user can read.
func writeKubeconfig(path string, client *rest.Config) error {
	const name = "crdcache"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: client.Host,
		CertificateAuthorityData: client.CAData}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: client.BearerToken}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	text, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return session.Usagef("--write-kubeconfig: %s exists: name a new file, or remove it", path)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
