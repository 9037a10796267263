package requests

import (
	"io"
	"net/http"
	"reflect"
	"strings"

	"github.com/klauspost/compress/gzip"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

const (
	acceptEncodingHeader  = "Accept-Encoding"
	contentEncodingHeader = "Content-Encoding"
	// identityEncoding requests an uncompressed response.
	identityEncoding = "identity"
)

// requestsGzip reports whether a transport requests and decompresses compressed responses, unseen by any
// wrapper but client-go's. Other wrappers may read responses.
func requestsGzip(transport http.RoundTripper) bool {
	for {
		if t, ok := transport.(*http.Transport); ok {
			return !t.DisableCompression
		}
		wrapper, ok := transport.(utilnet.RoundTripperWrapper)
		if _, own := transport.(*Connection); !ok || !own && !isClientGo(transport) {
			return false
		}
		transport = wrapper.WrappedRoundTripper()
	}
}

func isClientGo(transport http.RoundTripper) bool {
	t := reflect.TypeOf(transport)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return strings.HasPrefix(t.PkgPath(), "k8s.io/client-go/")
}

// withGzip returns a request like r that asks for compression explicitly, so that the transport leaves the
// decompression to decompress. That takes half the time of the transport's (BenchmarkInflate).
func withGzip(r *http.Request) *http.Request {
	if r.Header.Get(acceptEncodingHeader) != "" {
		return r
	}
	r = r.Clone(r.Context())
	r.Header.Set(acceptEncodingHeader, "gzip")
	return r
}

// decompress decompresses the response of a request for which the caller did not request compression. Some
// proxies compress responses although the request asked for identity.
func decompress(request *http.Request, response *http.Response) {
	if requestedEncoding := request.Header.Get(acceptEncodingHeader); requestedEncoding != "" &&
		requestedEncoding != identityEncoding ||
		!strings.EqualFold(response.Header.Get(contentEncodingHeader), "gzip") {
		return
	}
	response.Header.Del(contentEncodingHeader)
	response.Header.Del("Content-Length")
	response.ContentLength, response.Uncompressed = -1, true
	response.Body = &gzipBody{ReadCloser: response.Body}
}

// gzipBody decompresses a body. It reads nothing before the first Read, because a watch may be idle.
type gzipBody struct {
	io.ReadCloser
	decompressed *gzip.Reader
}

func (b *gzipBody) Read(data []byte) (int, error) {
	if b.decompressed == nil {
		plain, err := gzip.NewReader(b.ReadCloser)
		if err != nil {
			return 0, err
		}
		b.decompressed = plain
	}
	return b.decompressed.Read(data)
}
