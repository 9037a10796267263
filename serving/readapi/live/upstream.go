package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/serving/readapi"
)

type upstream struct {
	baseURL *url.URL
	client  *http.Client
	proxy   *httputil.ReverseProxy
}

// forwardedHeaders are the headers that are forwarded. The server uses its own credentials and does not
// impersonate clients.
var forwardedHeaders = []string{"Accept", "Accept-Encoding", "If-None-Match", "If-Modified-Since", "User-Agent"}

func newUpstream(config *rest.Config) (*upstream, error) {
	config = rest.CopyConfig(config)
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	u := &upstream{baseURL: base, client: client}
	u.proxy = &httputil.ReverseProxy{
		FlushInterval: -1, // send events of watches immediately
		Transport:     client.Transport,
		Rewrite:       u.rewrite,
		ModifyResponse: func(r *http.Response) error {
			r.Header.Set(ServedHeader, servedByCluster)
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() == nil {
				readapi.WriteError(w, r, unreachableError(err))
			}
		},
	}
	u.proxy.Transport = cmp.Or(u.proxy.Transport, http.DefaultTransport)
	return u, nil
}

func (u *upstream) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL = u.url(r.In.URL.Path, r.In.URL.RawQuery)
	r.Out.Host = u.baseURL.Host
	r.Out.Header = http.Header{}
	for _, name := range forwardedHeaders {
		if values := r.In.Header.Values(name); len(values) > 0 {
			r.Out.Header[name] = values
		}
	}
}

func (u *upstream) url(path, query string) *url.URL {
	target := *u.baseURL
	target.Path = strings.TrimSuffix(target.Path, "/") + path
	target.RawQuery = query
	return &target
}

// get sends a request and returns the body of a successful answer. The error is the Status of the API server.
func (u *upstream) get(ctx context.Context, path string, query url.Values,
	accept string) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.url(path, query.Encode()).String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	response, err := u.client.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, unreachableError(err)
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	defer response.Body.Close()
	return nil, statusError(response)
}

const maxStatusSize = 1 << 20

// statusError returns the Status of an answer as an error.
func statusError(response *http.Response) error {
	var status metav1.Status
	text, err := io.ReadAll(io.LimitReader(response.Body, maxStatusSize))
	if err == nil {
		err = json.Unmarshal(text, &status)
	}
	if err != nil || status.Code == 0 {
		return readapi.NewStatusError(response.StatusCode, "", "the server answered "+response.Status)
	}
	return &apierrors.StatusError{ErrStatus: status}
}

// unreachableError returns the error of an API server that does not answer.
func unreachableError(err error) error {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err // without the address, which clients must not learn
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("the API server does not answer: %v", err))
}
