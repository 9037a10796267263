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
	// maxMemoryPerByte is the maximum memory per byte of the file. A Writer stores content uncompressed if it
	// would need more.
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
	text := []byte(fileMagic)
	text = binary.LittleEndian.AppendUint16(text, formatMajor)
	text = binary.LittleEndian.AppendUint16(text, formatMinor)
	return binary.LittleEndian.AppendUint32(text, crc32.Checksum(text, castagnoli))
}

func checkHeader(text []byte) error {
	if len(text) < headerSize || string(text[:len(fileMagic)]) != fileMagic {
		return ErrNotSnapshot
	}
	if crc32.Checksum(text[:headerSize-4], castagnoli) != binary.LittleEndian.Uint32(text[headerSize-4:]) {
		return damagedError(0, "invalid checksum of the header")
	}
	if version := binary.LittleEndian.Uint16(text[len(fileMagic):]); version != formatMajor {
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
	at := len(dst)
	dst = append(dst, f.kind, f.coding, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, f.rawSize)
	dst = binary.LittleEndian.AppendUint32(dst, f.storedSize)
	checksum := crc32.Update(crc32.Checksum(dst[at:], castagnoli), castagnoli, content)
	dst = binary.LittleEndian.AppendUint32(dst, checksum)
	return append(dst, content...)
}

func parseFrame(text []byte, offset int64) (contentFrame, []byte, error) {
	if len(text) < frameSize {
		return contentFrame{}, nil, damagedError(offset, "a block of %d bytes is too short", len(text))
	}
	f := contentFrame{kind: text[0], coding: text[1], rawSize: binary.LittleEndian.Uint32(text[4:]),
		storedSize: binary.LittleEndian.Uint32(text[8:])}
	content := text[frameSize:]
	checksum := crc32.Update(crc32.Checksum(text[:frameSize-4], castagnoli), castagnoli, content)
	if checksum != binary.LittleEndian.Uint32(text[12:]) || int64(f.storedSize) != int64(len(content)) {
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
func formatTrailer(offset int64, size int) []byte {
	text := binary.LittleEndian.AppendUint64(nil, uint64(offset))
	text = binary.LittleEndian.AppendUint32(text, uint32(size))
	text = binary.LittleEndian.AppendUint32(text, crc32.Checksum(text, castagnoli))
	return append(text, fileMagic...)
}

// parseTrailer returns the position and the length of the index in a file of the given size.
func parseTrailer(text []byte, size int64) (offset int64, length int, err error) {
	indexEnd := size - int64(trailerSize)
	if string(text[16:]) != fileMagic {
		return 0, 0, damagedError(indexEnd, "the file is truncated, or saving was interrupted")
	}
	if crc32.Checksum(text[:12], castagnoli) != binary.LittleEndian.Uint32(text[12:]) {
		return 0, 0, damagedError(indexEnd, "invalid checksum of the trailer")
	}
	from, n := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint32(text[8:])
	if from > math.MaxInt64 || from < uint64(headerSize) || from > uint64(indexEnd) ||
		uint64(indexEnd)-from != uint64(n) {
		return 0, 0, damagedError(indexEnd, "invalid position of the index")
	}
	return int64(from), int(n), nil
}
