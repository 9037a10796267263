package block

import (
	"bytes"
	"fmt"
	"slices"
)

// Kind is the first byte of a record.
type Kind byte

const (
	Objects    Kind = 'O' // objects of one type
	Changes    Kind = 'C' // replaced and deleted objects of earlier records
	Checkpoint Kind = 'P' // makes the records before it valid
	Index      Kind = 'I' // locates the records of a closed file
)

// Parts are the parts of a record of objects, which are those of a packed block.
type Parts struct{ Head, Bodies []byte }

// AppendObjects appends a record of objects. A cold record has a smaller head, which takes longer to read.
func AppendObjects(dst []byte, p Parts, isCold bool, c *Compressor) ([]byte, error) {
	codings := []coding{s2Coding, zstdCoding}
	if isCold {
		slices.Reverse(codings)
	}
	dst, err := appendSection(append(dst, byte(Objects)), p.Head, maxHeadRatio, c, codings...)
	if err == nil {
		dst, err = appendSection(dst, p.Bodies, maxRatio, c, zstdCoding, s2Coding)
	}
	return dst, err
}

// StoredObjects is a record of objects that was read.
type StoredObjects struct {
	Head   []byte
	bodies section
}

// ReadObjects reads a record of objects, and copies its bodies.
func ReadObjects(record []byte) (o StoredObjects, err error) {
	if len(record) == 0 || Kind(record[0]) != Objects {
		return o, fmt.Errorf("%w: not a record of objects", ErrDamaged)
	}
	head, rest, err := cutSection(record[1:], maxHeadRatio)
	if err == nil {
		o.bodies, rest, err = cutSection(rest, maxRatio)
	}
	if err == nil {
		o.Head, err = head.open(nil)
	}
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d bytes after a record of objects", ErrDamaged, len(rest))
	}
	o.bodies.stored = bytes.Clone(o.bodies.stored)
	return o, err
}

// Bodies decompresses the bodies.
func (o StoredObjects) Bodies() ([]byte, error) { return o.bodies.open(nil) }

// BodiesIn works like Bodies. It uses the memory of the buffer if that suffices.
func (o StoredObjects) BodiesIn(buffer []byte) ([]byte, error) { return o.bodies.open(buffer) }

// BodiesSize returns the size of the bodies.
func (o StoredObjects) BodiesSize() int { return o.bodies.size }

// StoredSize returns the memory of the compressed bodies.
func (o StoredObjects) StoredSize() int { return len(o.bodies.stored) }

// AppendText appends a record of another kind than Objects.
func AppendText(dst []byte, kind Kind, text []byte, c *Compressor) ([]byte, error) {
	return appendSection(append(dst, byte(kind)), text, maxRatio, c, zstdCoding, s2Coding)
}

// ReadText returns the text of a record of AppendText. It may share the memory of the record.
func ReadText(kind Kind, record []byte) ([]byte, error) {
	if len(record) == 0 || Kind(record[0]) != kind {
		return nil, fmt.Errorf("%w: not a record of kind %q", ErrDamaged, kind)
	}
	return openOnly(record[1:])
}
