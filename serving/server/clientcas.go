package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/healthz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// clientCAs verifies client certificates with the CAs of the cluster. They are read in the background after
// the server has started to listen.
type clientCAs struct {
	provider dynamiccertificates.CAContentProvider
}

// The ConfigMap of a cluster with its client CAs.
const (
	clientCANamespace, clientCAConfigMap = "kube-system", "extension-apiserver-authentication"
	clientCAKey, requestHeaderCAKey      = "client-ca-file", "requestheader-client-ca-file"
	clientCATimeout                      = 10 * time.Second
)

// newClientCAs sets the client CAs of the cluster in options, as ApplyTo would. It disables further lookups
// of ApplyTo if the cluster has no CA of the API server's proxy. It returns nil if the options name other CAs
// or exclude the cluster's CAs, or if the cluster has no client CAs.
func newClientCAs(ctx context.Context,
	options *genericoptions.DelegatingAuthenticationOptions) (*clientCAs, error) {
	if options.SkipInClusterLookup ||
		options.ClientCert != (genericoptions.ClientCertAuthenticationOptions{}) {
		return nil, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", options.RemoteKubeConfigFile)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, clientCATimeout)
	defer cancel()
	configMap, err := client.CoreV1().ConfigMaps(clientCANamespace).Get(ctx, clientCAConfigMap,
		metav1.GetOptions{})
	if (err == nil || apierrors.IsNotFound(err)) && configMap.Data[requestHeaderCAKey] == "" &&
		options.RequestHeader.ClientCAFile == "" {
		// Otherwise the generic server logs every minute that the key is missing.
		options.SkipInClusterLookup = true
		klog.FromContext(ctx).Info("Requests through the API server cannot be authenticated: the cluster has no CA of its proxy. Restart crdcached after it is added",
			"configMap", clientCANamespace+"/"+clientCAConfigMap, "key", requestHeaderCAKey)
	}
	// In these cases the API server has no client CA.
	hasNoCAs := err == nil && configMap.Data[clientCAKey] == "" || apierrors.IsNotFound(err)
	if hasNoCAs || err != nil && options.TolerateInClusterLookupFailure {
		return nil, nil
	}
	provider, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca",
		clientCANamespace, clientCAConfigMap, clientCAKey, client)
	if err != nil {
		return nil, err
	}
	options.ClientCert.CAContentProvider = provider
	return &clientCAs{provider}, nil
}

func (c *clientCAs) areLoaded() bool { return c == nil || len(c.provider.CurrentCABundleContent()) > 0 }

// readyzCheck fails until the CAs are read. Before that, users with certificates are treated as anonymous.
func (c *clientCAs) readyzCheck() healthz.HealthChecker {
	return healthz.NamedCheck("user-authorities", func(*http.Request) error {
		if !c.areLoaded() {
			return fmt.Errorf("%w from the ConfigMap %s of %s", errNoClientCAs, clientCAConfigMap,
				clientCANamespace)
		}
		return nil
	})
}

var errNoClientCAs = errors.New("the certificate authorities of users have not been read yet")

// deferredProvider returns a provider without CAs until all CAs are known. A TLS server names its CAs to
// clients. If it names only some CAs, other clients send no certificate and stay anonymous for the whole
// connection. If it names none, every client sends its certificate, which is accepted as soon as its CA is
// known.
func (c *clientCAs) deferredProvider(
	provider dynamiccertificates.CAContentProvider) dynamiccertificates.CAContentProvider {
	if c == nil || provider == nil {
		return provider
	}
	return deferredClientCAs{provider, c}
}

type deferredClientCAs struct {
	dynamiccertificates.CAContentProvider
	clientCAs *clientCAs
}

var _ dynamiccertificates.ControllerRunner = deferredClientCAs{}

func (d deferredClientCAs) CurrentCABundleContent() []byte {
	if !d.clientCAs.areLoaded() {
		return nil
	}
	return d.CAContentProvider.CurrentCABundleContent()
}

func (d deferredClientCAs) RunOnce(ctx context.Context) error {
	if runner, ok := d.CAContentProvider.(dynamiccertificates.ControllerRunner); ok {
		return runner.RunOnce(ctx)
	}
	return nil
}

func (d deferredClientCAs) Run(ctx context.Context, workers int) {
	if runner, ok := d.CAContentProvider.(dynamiccertificates.ControllerRunner); ok {
		runner.Run(ctx, workers)
	}
}
