package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// Media types of the two forms of discovery. A server that does not support the first answers with the
// second. The order of the parameters matters to the server.
const (
	acceptLegacy     = "application/json"
	acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	acceptBoth       = acceptAggregated + "," + acceptLegacy
)

// transport fetches discovery documents with client-go's REST client, which provides authentication, retries
// on Retry-After and typed errors. A validatorTransport below that client handles ETags.
type transport struct {
	restClient rest.Interface
}

// newTransport returns a transport for the server of config. It does not contact the server.
func newTransport(config *rest.Config, options Options) (*transport, error) {
	config = rest.CopyConfig(config)
	config.Timeout = options.Timeout
	// The document caches limit the rate of rounds. client-go's default of 5 requests a second would only
	// slow down the legacy form, with one request per group version.
	config.QPS, config.RateLimiter = -1, nil
	config.GroupVersion, config.APIPath = &schema.GroupVersion{}, ""
	config.ContentConfig = rest.ContentConfig{GroupVersion: config.GroupVersion,
		NegotiatedSerializer: statusCodecs}
	httpClient := options.HTTPClient
	if httpClient == nil {
		var err error
		if httpClient, err = rest.HTTPClientFor(config); err != nil {
			return nil, fmt.Errorf("discovery client: %w", err)
		}
	}
	validating := *httpClient // handles ETags
	validating.Timeout = options.Timeout
	validating.Transport = validatorTransport{cmp.Or(httpClient.Transport, http.DefaultTransport)}
	client, err := rest.UnversionedRESTClientForConfigAndClient(config, &validating)
	if err != nil {
		return nil, fmt.Errorf("discovery client: %w", err)
	}
	return &transport{restClient: client}, nil
}

// statusCodecs decodes the Status objects of failed requests; documents are read raw.
var statusCodecs = func() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme).WithoutConversion()
}()

type fetchResponse struct {
	body []byte
	// aggregated distinguishes the aggregated form from the legacy one.
	aggregated bool
	etag       string
}

var errNotModified = errors.New("not modified")

// get fetches path. With an etag it returns errNotModified if the document has not changed.
func (t *transport) get(ctx context.Context, path, accept, etag string) (fetchResponse, error) {
	exchange := &etagExchange{ifNoneMatch: etag}
	var contentType string
	result := t.restClient.Get().AbsPath(path).SetHeader("Accept", accept).
		Do(context.WithValue(ctx, exchangeKey{}, exchange)).ContentType(&contentType)
	if exchange.notModified {
		return fetchResponse{}, errNotModified
	}
	body, err := result.Raw()
	if err != nil {
		err = result.Error() // unlike Raw, it decodes the server's message
	}
	if err != nil {
		return fetchResponse{}, fmt.Errorf("get %s: %w", path, err)
	}
	return fetchResponse{body: body, aggregated: isAggregated(contentType), etag: exchange.etag}, nil
}

// isAggregated reports whether a document has the aggregated form, with any parameters.
func isAggregated(contentType string) bool {
	base, params, err := mime.ParseMediaType(contentType)
	return err == nil && base == "application/json" && params["g"] == "apidiscovery.k8s.io" &&
		params["v"] == "v2" && params["as"] == "APIGroupDiscoveryList"
}

// etagExchange passes ETags between get and the RoundTripper, in the request's context. It needs no lock,
// because one get sends its requests one after the other.
type etagExchange struct {
	ifNoneMatch string
	etag        string
	notModified bool
}

type exchangeKey struct{}

// validatorTransport sends If-None-Match and reads ETag for requests with an etagExchange in their context.
type validatorTransport struct{ next http.RoundTripper }

func (v validatorTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	exchange, ok := req.Context().Value(exchangeKey{}).(*etagExchange)
	if !ok {
		return v.next.RoundTrip(req)
	}
	if exchange.ifNoneMatch != "" {
		req = req.Clone(req.Context()) // a RoundTripper must not change its request
		req.Header.Set("If-None-Match", exchange.ifNoneMatch)
	}
	resp, err := v.next.RoundTrip(req)
	if err == nil {
		exchange.etag = resp.Header.Get("ETag")
		exchange.notModified = resp.StatusCode == http.StatusNotModified
	}
	return resp, err
}

// WrappedRoundTripper implements the interface by which client-go finds the underlying transport.
func (v validatorTransport) WrappedRoundTripper() http.RoundTripper { return v.next }
