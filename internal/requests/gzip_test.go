package requests

import (
	"bytes"
	stdgzip "compress/gzip"
	"fmt"
	"io"
	"testing"

	"github.com/klauspost/compress/gzip"
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
	must(b, err)
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
				must(b, err)
				for err == nil {
					_, err = r.Read(buffer)
				}
			}
		})
	}
	bench("response", func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) })
	bench("transport", func(r io.Reader) (io.Reader, error) { return stdgzip.NewReader(r) })
}
