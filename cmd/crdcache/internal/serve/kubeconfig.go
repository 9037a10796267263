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
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/serving/readapi"
)

// serveAPI serves the read API of files on a loopback address until it is stopped, and has a kubeconfig for
// it meanwhile.
func (o *verb) serveAPI(ctx context.Context, activity *localserver.ActiveRequests) error {
	loopback := net.IPv4(127, 0, 0, 1)
	certificate, key, err := cert.GenerateSelfSignedCertKey(loopback.String(), []net.IP{loopback}, nil)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	// Without TLS, clients would not send the token.
	listener, err := tls.Listen("tcp", net.JoinHostPort(loopback.String(), "0"),
		&tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		return fmt.Errorf("listen for clients of the kubeconfig: %w", err)
	}
	defer listener.Close()
	token := rand.Text()
	if err := writeKubeconfig(o.kubeconfigPath, "https://"+listener.Addr().String(), token,
		certificate); err != nil {
		return err
	}
	defer os.Remove(o.kubeconfigPath)
	api := &localserver.Page{Listener: listener, Handler: WithToken(token, o.FilesHandler())}
	return localserver.ServePage(ctx, api, activity, func() {
		fmt.Fprintf(o.ErrOut, "serving %s; try KUBECONFIG=%s kubectl get all -A\n", o.FilesTitle(), o.kubeconfigPath)
	})
}

// serveOnlyAPI is serveAPI of a process without a page, which follows the files.
func (o *verb) serveOnlyAPI(ctx context.Context) error {
	followCtx, stopFollowing := context.WithCancel(ctx)
	defer stopFollowing()
	go o.Follow(followCtx, nil) // ended by stopFollowing
	err := o.serveAPI(ctx, localserver.NewActiveRequests(o.idleTimeout))
	if err == nil && ctx.Err() != nil {
		err = session.ErrInterrupted
	}
	return err
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
func writeKubeconfig(path, server, token string, authority []byte) error {
	const name = "crdcache"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: authority}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
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
