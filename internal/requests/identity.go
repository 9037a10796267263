package requests

import (
	"compress/gzip"
	"io"
	"net/http"
)

const (
	acceptEncodingHeader  = "Accept-Encoding"
	contentEncodingHeader = "Content-Encoding"
	// identity requests an uncompressed response.
	identity = "identity"
)

// decompressUnrequested decompresses a response that is compressed although the request asked for identity,
// as some proxies do. HTTP clients only decompress responses for which they requested compression.
func decompressUnrequested(request *http.Request, response *http.Response) {
	if request.Header.Get(acceptEncodingHeader) != identity ||
		response.Header.Get(contentEncodingHeader) != "gzip" {
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
