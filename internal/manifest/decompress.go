package manifest

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// maxWindow is the largest accepted window of zstd in bytes, used by its highest levels.
const maxWindow = 128 << 20

// decompress returns the plain text of data compressed with gzip or zstd, detected by its first bytes, and
// any other data unchanged.
func decompress(r io.Reader) (plain io.ReadCloser, compressed bool, err error) {
	in := bufio.NewReaderSize(r, 1<<16)
	magic, _ := in.Peek(4) // a failed read fails again
	switch {
	case len(magic) >= 2 && magic[0] == 0x1f && magic[1] == 0x8b:
		plain, err := gzip.NewReader(in)
		if err != nil {
			return nil, false, fmt.Errorf("decompress: %w", err)
		}
		return plain, true, nil
	case string(magic) == "\x28\xb5\x2f\xfd":
		plain, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, false, fmt.Errorf("decompress: %w", err)
		}
		return plain.IOReadCloser(), true, nil
	}
	return io.NopCloser(in), false, nil
}
