package requests

import (
	"bytes"
	stdgzip "compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/klauspost/compress/gzip"
	"k8s.io/client-go/transport"
)

// compressedList returns the JSON of objects, plain and compressed as by a kube-apiserver.
func compressedList(b *testing.B) (plain, packed []byte) {
	b.Helper()
	for k := range 5000 {
		plain = fmt.Appendf(plain, `{"metadata":{"name":"cert-%d","namespace":"ns-%d","uid":"%x","labels":{"app":"team-%d"}},`+
			`"spec":{"dnsNames":["a-%d.example.com"],"secretName":"secret-%d"},"status":{"observedGeneration":%d}}`+"\n",
			k, k%100, uint64(k)*0x9e3779b97f4a7c15, k%50, k, k, k%9)
	}
	var out bytes.Buffer
	w, err := stdgzip.NewWriterLevel(&out, stdgzip.BestSpeed)
	if err != nil {
		b.Fatal(err)
	}
	_, _ = w.Write(plain)
	_ = w.Close()
	return plain, out.Bytes()
}

// BenchmarkInflate compares the decompression of responses with that of Go's HTTP transport.
func BenchmarkInflate(b *testing.B) {
	plain, packed := compressedList(b)
	bench := func(name string, open func(io.Reader) (io.Reader, error)) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(plain)))
			buffer := make([]byte, 64<<10)
			for b.Loop() {
				r, err := open(bytes.NewReader(packed))
				if err != nil {
					b.Fatal(err)
				}
				for err == nil {
					_, err = r.Read(buffer)
				}
			}
		})
	}
	bench("response", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) })
	bench("transport", func(r io.Reader) (io.Reader, error) { return stdgzip.NewReader(r) })
}

// TestCompressionOfResponses verifies that responses are compressed if the client's transport would request
// that, and the caller gets them decompressed, unless it asked for gzip itself.
func TestCompressionOfResponses(t *testing.T) {
	const text = `{"kind":"Status"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		encoding := r.Header.Get(acceptEncodingHeader)
		w.Header().Set("Requested-Encoding", encoding)
		if encoding != "gzip" && r.URL.Path != "/always" {
			io.WriteString(w, text)
			return
		}
		w.Header().Set(contentEncodingHeader, "gzip")
		zipped := stdgzip.NewWriter(w)
		defer zipped.Close()
		io.WriteString(zipped, text)
	}))
	defer server.Close()
	for name, test := range map[string]struct {
		path, request string
		wrap          func(*http.Transport) http.RoundTripper
		encoding      string
		raw           bool
	}{
		"default": {encoding: "gzip"},
		"wrapped by client-go": {encoding: "gzip", wrap: func(t *http.Transport) http.RoundTripper {
			return transport.NewUserAgentRoundTripper("test", t)
		}},
		"wrapped by a user": {encoding: "gzip", wrap: func(t *http.Transport) http.RoundTripper {
			return encodingRejecter{t}
		}},
		"disabled": {wrap: func(t *http.Transport) http.RoundTripper {
			t.DisableCompression = true
			return t
		}},
		"identity":         {request: identityEncoding, encoding: identityEncoding},
		"ignored identity": {path: "/always", request: identityEncoding, encoding: identityEncoding},
		"own request":      {request: "gzip", encoding: "gzip", raw: true},
	} {
		t.Run(name, func(t *testing.T) {
			var next http.RoundTripper = &http.Transport{}
			if test.wrap != nil {
				next = test.wrap(&http.Transport{})
			}
			client := recordResponses(&http.Client{Transport: next})
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+test.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if test.request != "" {
				request.Header.Set(acceptEncodingHeader, test.request)
			}
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got := response.Header.Get("Requested-Encoding"); got != test.encoding {
				t.Errorf("the server got the Accept-Encoding %q, want %q", got, test.encoding)
			}
			if raw := response.Header.Get(contentEncodingHeader) == "gzip"; raw != test.raw || !raw &&
				string(body) != text {
				t.Errorf("raw %v, want %v: %q", raw, test.raw, body)
			}
			if got := request.Header.Get(acceptEncodingHeader); got != test.request {
				t.Errorf("the Accept-Encoding header of the caller's request changed to %q", got)
			}
		})
	}
}

// encodingRejecter is a custom transport that rejects responses with a Content-Encoding, as if it read their
// bodies.
type encodingRejecter struct{ http.RoundTripper }

func (b encodingRejecter) WrappedRoundTripper() http.RoundTripper { return b.RoundTripper }

func (b encodingRejecter) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(r)
	if err == nil && response.Header.Get(contentEncodingHeader) != "" {
		return nil, errors.New("the wrapper cannot read the response")
	}
	return response, err
}
