package manifest

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is how much memory a text compressed by zstd may ask for: what its highest levels use.
const maxWindow = 128 << 20

// decompress gives the plain text of one that gzip or zstd have compressed, which shows in its first bytes; so it does
// not matter what a file is called, and standard input can be compressed too. Any other text stays as it is.
func decompress(r io.Reader) (io.ReadCloser, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	magic, _ := in.Peek(4) // what goes wrong goes wrong again
	switch {
	case len(magic) >= 2 && magic[0] == 0x1f && magic[1] == 0x8b:
		plain, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
		return plain, nil
	case string(magic) == "\x28\xb5\x2f\xfd":
		plain, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
		return plain.IOReadCloser(), nil
	}
	return io.NopCloser(in), nil
}
