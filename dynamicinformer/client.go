package dynamicinformer

import (
	"errors"
	"fmt"
	"net/http"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/internal/codec"
)

// NewClient returns a dynamic client that decodes objects, lists and watches several times faster than that of
// dynamic.NewForConfigAndClient, with the same results. It can be used for everything else, too, and is safe
// for concurrent use.
//
// The config is copied. The HTTP client takes precedence over what config says about transport; without one,
// it is made from config. NewClient does not contact the server; it fails where config contradicts itself.
func NewClient(config *rest.Config, httpClient *http.Client) (dynamic.Interface, error) {
	if config == nil {
		return nil, errors.New("dynamicinformer: making a dynamic client: no config")
	}
	config = dynamic.ConfigFor(config)
	config.NegotiatedSerializer = codec.Wrap(config.NegotiatedSerializer, codec.Options{})
	// The dynamic client gives whole paths, so that neither of these is used.
	config.GroupVersion = nil
	config.APIPath = "/"
	if httpClient == nil {
		var err error
		if httpClient, err = rest.HTTPClientFor(config); err != nil {
			return nil, fmt.Errorf("dynamicinformer: making a dynamic client: %w", err)
		}
	}
	client, err := rest.UnversionedRESTClientForConfigAndClient(config, watchThrottling(httpClient))
	if err != nil {
		return nil, fmt.Errorf("dynamicinformer: making a dynamic client: %w", err)
	}
	return dynamic.New(client), nil
}
