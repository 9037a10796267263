package block

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Magic begins every file. Its first byte is not valid UTF-8, so no manifest begins with it.
const Magic = "\x93CRDSNAP"

const (
	// version is the version of the format. Readers reject others.
	version = 5

	// HeaderSize is the size of a file's header: magic, version, form, id, checksum.
	HeaderSize = len(Magic) + 2 + 2 + idSize + 4
	idSize     = 16
	formOffset = len(Magic) + 2
	idOffset   = formOffset + 2

	// FrameHeader is the size of a frame's header: size, flags, checksum.
	FrameHeader = 4 + 4 + 4
)

// Form is the form of a file.
type Form uint16

const (
	ClosedForm Form = 'S' // ends with an index
	LogForm    Form = 'L' // grows
)

// ErrKey is the error for frames encrypted with an unknown key, or not at all although there are keys.
var ErrKey = errors.New("the persisted data was written with another key, or without one")

// ErrMagic is the error for files that do not begin with Magic.
var ErrMagic = errors.New("not a snapshot file")

// FormatError reports a damaged file, or one of another version.
type FormatError struct {
	// Offset is the position in the file.
	Offset int64
	// Problem describes the problem, and the remedy if there is one.
	Problem string
}

// Error implements error.
func (e *FormatError) Error() string { return fmt.Sprintf("at byte %d: %s", e.Offset, e.Problem) }

// Damaged returns the error for damage at an offset.
func Damaged(offset int64, format string, args ...any) error {
	return &FormatError{offset, fmt.Sprintf(format, args...) + "; copy or save it again"}
}

// Header is the header of a file.
type Header struct {
	Form Form
	// ID is a random number, so that no frame is valid in another file. It is zero in closed files.
	ID [idSize]byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Append appends the bytes of the header.
func (h Header) Append(dst []byte) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint16(append(dst, Magic...), version)
	dst = append(binary.LittleEndian.AppendUint16(dst, uint16(h.Form)), h.ID[:]...)
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// ReadHeader reads the header of a file of size bytes.
func ReadHeader(source io.ReaderAt, size int64) (h Header, err error) {
	text := make([]byte, min(size, int64(HeaderSize)))
	if err := ReadAt(source, text, 0); err != nil {
		return h, err
	}
	if len(text) < len(Magic) || string(text[:len(Magic)]) != Magic {
		return h, ErrMagic
	}
	if len(text) < HeaderSize {
		return h, Damaged(size, "the file is truncated, or saving was interrupted")
	}
	sum := binary.LittleEndian.Uint32(text[HeaderSize-4:])
	if crc32.Checksum(text[:HeaderSize-4], castagnoli) != sum {
		return h, Damaged(0, "invalid checksum of the header")
	}
	if v := binary.LittleEndian.Uint16(text[len(Magic):]); v != version {
		return h, &FormatError{int64(len(Magic)), fmt.Sprintf("the file has format version %d, this program reads version %d: use the program that wrote it", v, version)}
	}
	h.Form = Form(binary.LittleEndian.Uint16(text[formOffset:]))
	copy(h.ID[:], text[idOffset:])
	return h, nil
}

// ReadAt fills dst from an offset. The end of the file is damage.
func ReadAt(source io.ReaderAt, dst []byte, offset int64) error {
	n, err := source.ReadAt(dst, offset)
	if n == len(dst) {
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read at byte %d: %w", offset, err)
	}
	return Damaged(offset, "unexpected end of file")
}

// place is the identity of a frame: its file and its offset. Checksum and encryption include it, so that a
// moved frame is damage.
func (h Header) place(offset int64) []byte {
	return binary.LittleEndian.AppendUint64(h.ID[:idSize:idSize], uint64(offset))
}

func checksum(place, frame []byte) uint32 {
	sum := crc32.Update(crc32.Checksum(place, castagnoli), castagnoli, frame[:FrameHeader-4])
	return crc32.Update(sum, castagnoli, frame[FrameHeader:])
}

// AppendFrame appends the frame of a record that begins at an offset of the file.
func (h Header) AppendFrame(dst, record []byte, offset int64, c *Cipher) []byte {
	start, place := len(dst), h.place(offset)
	dst = append(dst, make([]byte, FrameHeader)...)
	if c != nil {
		dst = c.keys[0].aead.Seal(append(dst, c.keys[0].id...), nil, record, place)
		dst[start+4] = 1
	} else {
		dst = append(dst, record...)
	}
	frame := dst[start:]
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-FrameHeader))
	binary.LittleEndian.PutUint32(frame[8:], checksum(place, frame))
	return dst
}

// FrameSize returns the size of a frame that begins with a header, and whether the header is possible.
func FrameSize(header []byte) (size int64, ok bool) {
	if len(header) < FrameHeader {
		return 0, false
	}
	length, flags := binary.LittleEndian.Uint32(header), binary.LittleEndian.Uint32(header[4:])
	return FrameHeader + int64(length), flags <= 1 && length > 0
}

// ParseFrame returns the record of a frame at an offset. It may share the memory of the frame.
func (h Header) ParseFrame(frame []byte, offset int64, c *Cipher) (record []byte, isCurrent bool, err error) {
	place := h.place(offset)
	if size, ok := FrameSize(frame); !ok || size != int64(len(frame)) ||
		checksum(place, frame) != binary.LittleEndian.Uint32(frame[8:]) {
		return nil, false, Damaged(offset, "invalid checksum of a block")
	}
	switch isSealed := frame[4] == 1; {
	case isSealed != (c != nil): // anyone who can write the file could have written a plain frame
		return nil, false, ErrKey
	case isSealed:
		record, isCurrent, err = c.open(frame[FrameHeader:], place)
	default:
		record, isCurrent = frame[FrameHeader:], true
	}
	if err == nil && len(record) == 0 {
		err = ErrDamaged
	}
	if errors.Is(err, ErrDamaged) {
		err = Damaged(offset, "%v", err)
	}
	return record, isCurrent, err
}

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
