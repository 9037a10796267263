package box

import (
	"context"
	"encoding/json"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Client returns a REST client for whole paths, without a rate limit.
func (b *Box) Client() (*rest.RESTClient, error) {
	config, err := clientcmd.BuildConfigFromFlags("", b.kubeconfig)
	if err != nil {
		return nil, err
	}
	config = dynamic.ConfigFor(config)
	config.GroupVersion = nil
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return rest.UnversionedRESTClientFor(config)
}

// Version returns that of the API server.
func (b *Box) Version(ctx context.Context) (string, error) {
	client, err := b.Client()
	if err != nil {
		return "", err
	}
	answer, err := client.Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	var version struct{ GitVersion string }
	err = json.Unmarshal(answer, &version)
	return version.GitVersion, err
}
