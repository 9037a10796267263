package block

import (
	"encoding/binary"
	"hash/crc32"
	"io"
)

// trailerSize is the size of the end of a closed file: offset and size of the index, checksum, magic.
const trailerSize = 8 + 4 + 4 + len(Magic)

// AppendTrailer appends the last bytes of a closed file, which locate the frame of the index.
func AppendTrailer(dst []byte, indexOffset int64, indexSize uint32) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(indexOffset))
	dst = binary.LittleEndian.AppendUint32(dst, indexSize)
	dst = binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
	return append(dst, Magic...)
}

// ReadTrailer returns the position and the length of the index of a closed file of size bytes.
func ReadTrailer(source io.ReaderAt, size int64) (offset int64, length int, err error) {
	if h, err := ReadHeader(source, size); err != nil {
		return 0, 0, err
	} else if (h != Header{Form: ClosedForm}) {
		return 0, 0, Damaged(0, "the file has another form")
	}
	end, trailer := size-int64(trailerSize), make([]byte, trailerSize)
	if end >= int64(HeaderSize) {
		if err := ReadAt(source, trailer, end); err != nil {
			return 0, 0, err
		}
	}
	if string(trailer[16:]) != Magic {
		return 0, 0, Damaged(max(end, 0), "the file is truncated, or saving was interrupted")
	}
	at, indexSize := binary.LittleEndian.Uint64(trailer), binary.LittleEndian.Uint32(trailer[8:])
	if crc32.Checksum(trailer[:12], castagnoli) != binary.LittleEndian.Uint32(trailer[12:]) ||
		at < uint64(HeaderSize) || at > uint64(end) || uint64(end)-at != uint64(indexSize) {
		return 0, 0, Damaged(end, "invalid checksum of the trailer")
	}
	return int64(at), int(indexSize), nil
}
