package requests

import (
	"compress/gzip"
	"io"
	"net/http"
)

const (
	acceptEncodingHeader  = "Accept-Encoding"
	contentEncodingHeader = "Content-Encoding"
	// identity asks for an answer that is not compressed.
	identity = "identity"
)

// decompressUnasked decompresses an answer that was asked for as it is, and comes compressed all the same:
// some proxies do not look at what was asked for. HTTP clients decompress what they have asked for
// themselves.
func decompressUnasked(request *http.Request, response *http.Response) {
	if request.Header.Get(acceptEncodingHeader) != identity ||
		response.Header.Get(contentEncodingHeader) != "gzip" {
		return
	}
	response.Header.Del(contentEncodingHeader)
	response.Header.Del("Content-Length")
	response.ContentLength, response.Uncompressed = -1, true
	response.Body = &gzipBody{ReadCloser: response.Body}
}

// gzipBody reads what a body has compressed. Nothing is read before the first Read, because a watch may have
// nothing to say.
type gzipBody struct {
	io.ReadCloser
	plain *gzip.Reader
}

// Read implements io.Reader.
func (b *gzipBody) Read(data []byte) (int, error) {
	if b.plain == nil {
		plain, err := gzip.NewReader(b.ReadCloser)
		if err != nil {
			return 0, err
		}
		b.plain = plain
	}
	return b.plain.Read(data)
}
