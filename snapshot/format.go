package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// magic begins every file. Its first byte is no UTF-8, so that no manifest begins with it.
const magic = "\x93CRDSNAP"

// Magic is what every snapshot begins with.
func Magic() []byte { return []byte(magic) }

const (
	// major is the version of the format. Who knows another one only must not read on.
	major = 1
	// minor counts additions, which readers may pass over.
	minor = 0

	headerSize  = len(magic) + 2 + 2 + 4
	frameSize   = 16
	trailerSize = 8 + 4 + 4 + len(magic)
)

// The kinds of frames.
const (
	kindObjects = 'O'
	kindIndex   = 'I'
)

// How the content of a frame is written.
const (
	codingPlain = 0
	codingZstd  = 1
)

const (
	// maxRaw is the size of the largest content of a frame.
	maxRaw = 64 << 20
	// maxCost is how many bytes of memory a byte of the file may take. A writer leaves content uncompressed
	// that would take more.
	maxCost = 1024
	// parsedCost is how many bytes a byte of content takes at most when it is parsed: see parseBlock.
	parsedCost = 5
)

// ErrNoSnapshot is the error for what does not begin as a snapshot does.
var ErrNoSnapshot = errors.New("this is no snapshot")

// FormatError says that a file is damaged, or written by a newer version.
type FormatError struct {
	// Offset is where in the file.
	Offset int64
	// Problem says what is wrong, and what to do where something helps.
	Problem string
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("at byte %d: %s", e.Offset, e.Problem)
}

func damaged(offset int64, format string, args ...any) error {
	return &FormatError{offset, fmt.Sprintf(format, args...) + "; copy or save it again"}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header is the first bytes of a file.
func header() []byte {
	text := []byte(magic)
	text = binary.LittleEndian.AppendUint16(text, major)
	text = binary.LittleEndian.AppendUint16(text, minor)
	return binary.LittleEndian.AppendUint32(text, crc32.Checksum(text, castagnoli))
}

func checkHeader(text []byte) error {
	if len(text) < headerSize || string(text[:len(magic)]) != magic {
		return ErrNoSnapshot
	}
	if crc32.Checksum(text[:headerSize-4], castagnoli) != binary.LittleEndian.Uint32(text[headerSize-4:]) {
		return damaged(0, "the header is damaged")
	}
	if version := binary.LittleEndian.Uint16(text[len(magic):]); version != major {
		return &FormatError{int64(len(magic)),
			fmt.Sprintf("the format has version %d, and this program reads version %d: use a newer one",
				version, major)}
	}
	return nil
}

// frame is what comes before content.
type frame struct {
	kind, coding byte
	raw, stored  uint32
}

// appendFrame appends a frame with its content.
func appendFrame(dst []byte, f frame, content []byte) []byte {
	at := len(dst)
	dst = append(dst, f.kind, f.coding, 0, 0)
	dst = binary.LittleEndian.AppendUint32(dst, f.raw)
	dst = binary.LittleEndian.AppendUint32(dst, f.stored)
	sum := crc32.Update(crc32.Checksum(dst[at:], castagnoli), castagnoli, content)
	dst = binary.LittleEndian.AppendUint32(dst, sum)
	return append(dst, content...)
}

// parseFrame checks a frame, and returns its content as it is stored.
func parseFrame(text []byte, offset int64) (frame, []byte, error) {
	if len(text) < frameSize {
		return frame{}, nil, damaged(offset, "a block of %d bytes is too short", len(text))
	}
	f := frame{kind: text[0], coding: text[1], raw: binary.LittleEndian.Uint32(text[4:]),
		stored: binary.LittleEndian.Uint32(text[8:])}
	content := text[frameSize:]
	sum := crc32.Update(crc32.Checksum(text[:frameSize-4], castagnoli), castagnoli, content)
	if sum != binary.LittleEndian.Uint32(text[12:]) || int64(f.stored) != int64(len(content)) {
		return f, nil, damaged(offset, "a block is damaged: its checksum is another one")
	}
	return f, content, f.check(offset)
}

// check refuses content that would cost more than the bytes of the file justify.
func (f frame) check(offset int64) error {
	if f.raw > maxRaw || uint64(f.raw)*parsedCost > uint64(f.stored)*maxCost {
		return damaged(offset, "a block claims to have %d bytes, compressed to %d", f.raw, f.stored)
	}
	return nil
}

// trailer is the last bytes of a file: where the index is.
func trailer(offset int64, size int) []byte {
	text := binary.LittleEndian.AppendUint64(nil, uint64(offset))
	text = binary.LittleEndian.AppendUint32(text, uint32(size))
	text = binary.LittleEndian.AppendUint32(text, crc32.Checksum(text, castagnoli))
	return append(text, magic...)
}

// parseTrailer returns where the index of a file of a size is.
func parseTrailer(text []byte, size int64) (offset int64, length int, err error) {
	at := size - int64(trailerSize)
	if string(text[16:]) != magic {
		return 0, 0, damaged(at, "the file has no end: it was cut, or saving it was interrupted")
	}
	if crc32.Checksum(text[:12], castagnoli) != binary.LittleEndian.Uint32(text[12:]) {
		return 0, 0, damaged(at, "the end of the file is damaged")
	}
	from, n := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint32(text[8:])
	if from > math.MaxInt64 || from < uint64(headerSize) || from > uint64(at) ||
		uint64(at)-from != uint64(n) {
		return 0, 0, damaged(at, "the index is not where the end of the file says")
	}
	return int64(from), int(n), nil
}
