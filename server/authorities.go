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
)

// authorities are those that sign certificates of users. Where no file has them the cluster tells, some time
// after the server has begun to listen.
type authorities struct {
	provider dynamiccertificates.CAContentProvider
}

// Where a cluster tells its authorities.
const (
	authoritiesNamespace, authoritiesName = "kube-system", "extension-apiserver-authentication"
	authoritiesKey                        = "client-ca-file"
	// authoritiesTime is how long the server waits to hear whether there are any.
	authoritiesTime = 10 * time.Second
)

// userAuthorities has the options take the authorities of users from the cluster, as they would by
// themselves; nil where they do not, or where the cluster has none.
func userAuthorities(options *genericoptions.DelegatingAuthenticationOptions) (*authorities, error) {
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
	ctx, cancel := context.WithTimeout(context.Background(), authoritiesTime)
	defer cancel()
	told, err := client.CoreV1().ConfigMaps(authoritiesNamespace).Get(ctx, authoritiesName,
		metav1.GetOptions{})
	// by an API server without any
	none := err == nil && told.Data[authoritiesKey] == "" || apierrors.IsNotFound(err)
	if none || err != nil && options.TolerateInClusterLookupFailure {
		return nil, nil
	}
	provider, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca",
		authoritiesNamespace, authoritiesName, authoritiesKey, client)
	if err != nil {
		return nil, err
	}
	options.ClientCert.CAContentProvider = provider
	return &authorities{provider}, nil
}

func (a *authorities) known() bool { return a == nil || len(a.provider.CurrentCABundleContent()) > 0 }

// readiness is ready when the authorities are known: before, users with certificates are taken for anonymous.
func (a *authorities) readiness() healthz.HealthChecker {
	return healthz.NamedCheck("user-authorities", func(*http.Request) error {
		if !a.known() {
			return fmt.Errorf("%w in the ConfigMap %s of %s", errNoAuthorities, authoritiesName,
				authoritiesNamespace)
		}
		return nil
	})
}

var errNoAuthorities = errors.New("the authorities of users' certificates have not been read yet, which are told")

// whole names no authorities to clients before it can name all. A client has no certificate to show to a
// server that names others alone, and stays anonymous for as long as it is connected; where none is named it
// shows what it has, and is known by that as soon as its authority is.
func (a *authorities) whole(all dynamiccertificates.CAContentProvider) dynamiccertificates.CAContentProvider {
	if a == nil || all == nil {
		return all
	}
	return wholeAuthorities{all, a}
}

type wholeAuthorities struct {
	dynamiccertificates.CAContentProvider
	of *authorities
}

var _ dynamiccertificates.ControllerRunner = wholeAuthorities{}

// CurrentCABundleContent implements dynamiccertificates.CAContentProvider.
func (w wholeAuthorities) CurrentCABundleContent() []byte {
	if !w.of.known() {
		return nil
	}
	return w.CAContentProvider.CurrentCABundleContent()
}

// RunOnce implements dynamiccertificates.ControllerRunner.
func (w wholeAuthorities) RunOnce(ctx context.Context) error {
	if runner, ok := w.CAContentProvider.(dynamiccertificates.ControllerRunner); ok {
		return runner.RunOnce(ctx)
	}
	return nil
}

// Run implements dynamiccertificates.ControllerRunner.
func (w wholeAuthorities) Run(ctx context.Context, workers int) {
	if runner, ok := w.CAContentProvider.(dynamiccertificates.ControllerRunner); ok {
		runner.Run(ctx, workers)
	}
}
