package block

import (
	"encoding/binary"
	"io"
)

// trailerSize is the size of the end of a closed file: the offset of the index, and the magic.
const trailerSize = 8 + len(Magic)

// AppendTrailer appends the last bytes of a closed file, which locate the frame of the index before them.
// They need no checksum: that of a frame covers its offset and its size.
func AppendTrailer(dst []byte, indexOffset int64) []byte {
	return append(binary.LittleEndian.AppendUint64(dst, uint64(indexOffset)), Magic...)
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
	if string(trailer[8:]) != Magic {
		return 0, 0, Damaged(max(end, 0), "the file is truncated, or saving was interrupted")
	}
	at := binary.LittleEndian.Uint64(trailer)
	if at < uint64(HeaderSize) || at > uint64(end) {
		return 0, 0, Damaged(end, "the trailer has the invalid position %d of the index", at)
	}
	return int64(at), int(uint64(end) - at), nil
}
