package requests

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"os"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Client is a dynamic client from which informers can read packed objects.
type Client struct {
	dynamic.Interface
	config      *rest.Config
	defaultREST *rest.RESTClient
	watches     *watchRecord
}

// NewClient returns a client for config. httpClient takes precedence over the transport settings of config;
// if it is nil, it is created from config.
func NewClient(config *rest.Config, httpClient *http.Client) (*Client, error) {
	if config == nil {
		return nil, errors.New("create client: the REST config is nil")
	}
	config = dynamic.ConfigFor(config)
	// The dynamic client requests absolute paths, so that these are not used.
	config.GroupVersion = nil
	config.APIPath = "/"
	config.NegotiatedSerializer = listSerializer{config.NegotiatedSerializer}
	if httpClient == nil {
		var err error
		if httpClient, err = rest.HTTPClientFor(config); err != nil {
			return nil, err
		}
	}
	stock, err := rest.UnversionedRESTClientForConfigAndClient(config, recordResponses(httpClient))
	if err != nil {
		return nil, err
	}
	return &Client{Interface: dynamic.New(stock), config: config, defaultREST: stock,
		watches: watchRecordOf(httpClient.Transport, config.Host)}, nil
}

// Endpoint identifies the server by its address and its certificate authority.
func (c *Client) Endpoint() string {
	if shared, ok := c.config.Transport.(*Connection); ok {
		return shared.identity()
	}
	return endpointOf(c.config)
}

func endpointOf(config *rest.Config) string {
	authority := config.CAData
	if len(authority) == 0 && config.CAFile != "" {
		// An unreadable file means that no server is trusted, and that no response arrives.
		authority, _ = os.ReadFile(config.CAFile)
	}
	endpoint := fmt.Sprintf("%s %x", config.Host, sha256.Sum256(authority))
	if config.ServerName != "" { // one address can serve several clusters
		endpoint += " " + config.ServerName
	}
	return endpoint
}
