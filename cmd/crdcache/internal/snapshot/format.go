package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// fileMagic begins every file. Its first byte is not valid UTF-8, so no manifest begins with it.
const fileMagic = "\x93CRDSNAP"

// Magic returns the first bytes of every snapshot.
func Magic() []byte { return []byte(fileMagic) }

const (
	// formatMajor is the version of the format. Readers reject other major versions.
	formatMajor = 1
	// formatMinor counts extensions that readers can ignore.
	formatMinor = 0

	headerSize  = len(fileMagic) + 2 + 2 + 4
	frameSize   = 16
	trailerSize = 8 + 4 + 4 + len(fileMagic)
)

// The kinds of frames.
const (
	kindObjects = 'O'
	kindIndex   = 'I'
)

// Codings of the content of a frame.
const (
	codingPlain = 0
	codingZstd  = 1
)

const (
	maxContentSize = 64 << 20
	// maxMemoryPerByte is the maximum memory per byte of the file. A Writer stores content uncompressed if
	// its compressed form would exceed the maximum.
	maxMemoryPerByte = 1024
	// maxParsedMemoryPerByte is the maximum memory per byte of parsed content: see parseBlock.
	maxParsedMemoryPerByte = 5
)

// ErrNotSnapshot is the error for files that do not begin with Magic.
var ErrNotSnapshot = errors.New("not a snapshot file")

// FormatError reports a damaged file, or one of a newer version.
type FormatError struct {
	// Offset is the position in the file.
	Offset int64
	// Problem describes the problem, and the remedy if there is one.
	Problem string
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("at byte %d: %s", e.Offset, e.Problem)
}

func damagedError(offset int64, format string, args ...any) error {
	return &FormatError{offset, fmt.Sprintf(format, args...) + "; copy or save it again"}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func formatHeader() []byte {
	header := []byte(fileMagic)
	header = binary.LittleEndian.AppendUint16(header, formatMajor)
	header = binary.LittleEndian.AppendUint16(header, formatMinor)
	return binary.LittleEndian.AppendUint32(header, crc32.Checksum(header, castagnoli))
}

func checkHeader(header []byte) error {
	if len(header) < headerSize || string(header[:len(fileMagic)]) != fileMagic {
		return ErrNotSnapshot
	}
	checksum := binary.LittleEndian.Uint32(header[headerSize-4:])
	if crc32.Checksum(header[:headerSize-4], castagnoli) != checksum {
		return damagedError(0, "invalid checksum of the header")
	}
	if version := binary.LittleEndian.Uint16(header[len(fileMagic):]); version != formatMajor {
		return &FormatError{int64(len(fileMagic)),
			fmt.Sprintf("the file has format version %d, this program reads version %d: use a newer version of this program",
				version, formatMajor)}
	}
	return nil
}

// contentFrame is the header of content.
type contentFrame struct {
	kind, coding        byte
	rawSize, storedSize uint32
}

func appendFrame(dst []byte, f contentFrame, content []byte) []byte {
	start := len(dst)
	dst = append(dst, f.kind, f.coding, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, f.rawSize)
	dst = binary.LittleEndian.AppendUint32(dst, f.storedSize)
	checksum := crc32.Update(crc32.Checksum(dst[start:], castagnoli), castagnoli, content)
	dst = binary.LittleEndian.AppendUint32(dst, checksum)
	return append(dst, content...)
}

func parseFrame(frame []byte, offset int64) (contentFrame, []byte, error) {
	if len(frame) < frameSize {
		return contentFrame{}, nil, damagedError(offset, "a block of %d bytes is too short", len(frame))
	}
	f := contentFrame{kind: frame[0], coding: frame[1], rawSize: binary.LittleEndian.Uint32(frame[4:]),
		storedSize: binary.LittleEndian.Uint32(frame[8:])}
	content := frame[frameSize:]
	checksum := crc32.Update(crc32.Checksum(frame[:frameSize-4], castagnoli), castagnoli, content)
	if checksum != binary.LittleEndian.Uint32(frame[12:]) || int64(f.storedSize) != int64(len(content)) {
		return f, nil, damagedError(offset, "invalid checksum of a block")
	}
	return f, content, f.check(offset)
}

// check returns an error if the content is larger than the limits allow.
func (f contentFrame) check(offset int64) error {
	if f.rawSize > maxContentSize ||
		uint64(f.rawSize)*maxParsedMemoryPerByte > uint64(f.storedSize)*maxMemoryPerByte {
		return damagedError(offset, "invalid block: %d bytes, compressed to %d", f.rawSize, f.storedSize)
	}
	return nil
}

// formatTrailer returns the last bytes of a file, which locate the index.
func formatTrailer(indexOffset int64, indexLength int) []byte {
	trailer := binary.LittleEndian.AppendUint64(nil, uint64(indexOffset))
	trailer = binary.LittleEndian.AppendUint32(trailer, uint32(indexLength))
	trailer = binary.LittleEndian.AppendUint32(trailer, crc32.Checksum(trailer, castagnoli))
	return append(trailer, fileMagic...)
}

// parseTrailer returns the position and the length of the index in a file of fileSize bytes.
func parseTrailer(trailer []byte, fileSize int64) (offset int64, length int, err error) {
	indexEnd := fileSize - int64(trailerSize)
	if string(trailer[16:]) != fileMagic {
		return 0, 0, damagedError(indexEnd, "the file is truncated, or saving was interrupted")
	}
	if crc32.Checksum(trailer[:12], castagnoli) != binary.LittleEndian.Uint32(trailer[12:]) {
		return 0, 0, damagedError(indexEnd, "invalid checksum of the trailer")
	}
	indexOffset, indexLength := binary.LittleEndian.Uint64(trailer), binary.LittleEndian.Uint32(trailer[8:])
	if indexOffset > math.MaxInt64 || indexOffset < uint64(headerSize) || indexOffset > uint64(indexEnd) ||
		uint64(indexEnd)-indexOffset != uint64(indexLength) {
		return 0, 0, damagedError(indexEnd, "invalid position of the index")
	}
	return int64(indexOffset), int(indexLength), nil
}
