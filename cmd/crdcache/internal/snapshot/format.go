package snapshot

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"github.com/crdcache/crdcache/internal/block"
)

// Magic returns the first bytes of every snapshot.
func Magic() []byte { return []byte(block.Magic) }

// ErrNotSnapshot is the error for files that do not begin with Magic.
var ErrNotSnapshot = block.ErrMagic

// FormatError reports a damaged file, or one of another version.
type FormatError = block.FormatError

// header is the header of every snapshot.
var header = block.Header{Form: block.ClosedForm}

const trailerSize = 8 + 4 + 4 + len(block.Magic)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// formatTrailer returns the last bytes of a file, which locate the index.
func formatTrailer(indexOffset int64, indexSize uint32) []byte {
	trailer := binary.LittleEndian.AppendUint64(nil, uint64(indexOffset))
	trailer = binary.LittleEndian.AppendUint32(trailer, indexSize)
	trailer = binary.LittleEndian.AppendUint32(trailer, crc32.Checksum(trailer, castagnoli))
	return append(trailer, block.Magic...)
}

// parseTrailer returns the position and the length of the index in a file of fileSize bytes.
func parseTrailer(trailer []byte, fileSize int64) (offset int64, length int, err error) {
	indexEnd := fileSize - int64(trailerSize)
	if string(trailer[16:]) != block.Magic {
		return 0, 0, block.Damaged(indexEnd, "the file is truncated, or saving was interrupted")
	}
	if crc32.Checksum(trailer[:12], castagnoli) != binary.LittleEndian.Uint32(trailer[12:]) {
		return 0, 0, block.Damaged(indexEnd, "invalid checksum of the trailer")
	}
	indexOffset, indexLength := binary.LittleEndian.Uint64(trailer), binary.LittleEndian.Uint32(trailer[8:])
	if indexOffset > math.MaxInt64 || indexOffset < uint64(block.HeaderSize) ||
		indexOffset > uint64(indexEnd) || uint64(indexEnd)-indexOffset != uint64(indexLength) {
		return 0, 0, block.Damaged(indexEnd, "invalid position of the index")
	}
	return int64(indexOffset), int(indexLength), nil
}
