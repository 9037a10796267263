package s2

import (
	"errors"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
)

var (
	errDamaged      = errors.New("the compressed data is damaged")
	errNoDictionary = errors.New("create a dictionary: the library rejects the samples")
)

type compressor struct{ dictionary *s2.Dict }

func (c *compressor) Compress(dst, src []byte) []byte {
	before := len(dst)
	dst = slices.Grow(dst, s2.MaxEncodedLen(len(src)))
	return dst[:before+len(c.dictionary.Encode(dst[before:], src))]
}

// maxObject limits the decompressed size, so that damaged data cannot cause large allocations.
// crdcache compresses only smaller objects.
const maxObject = 128 << 20

func (c *compressor) Decompress(dst, src []byte) ([]byte, error) {
	length, err := s2.DecodedLen(src)
	if err != nil || length > maxObject {
		return dst, fmt.Errorf("%w: invalid length", errDamaged)
	}
	before := len(dst)
	dst = slices.Grow(dst, length)
	if _, err := c.dictionary.Decode(dst[before:], src); err != nil {
		return dst[:before], fmt.Errorf("%w: %w", errDamaged, err)
	}
	return dst[:before+length], nil
}
