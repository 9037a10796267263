package packed

import "fmt"

// Compressor is dynamicinformer.Compressor. It is an alias so that the public package can show the interface
// in its documentation.
type Compressor = interface {
	Compress(dst, src []byte) []byte
	Decompress(dst, src []byte) ([]byte, error)
}

// Trainer makes Compressors: see dynamicinformer.Compression.
type Trainer interface {
	Train(samples [][]byte) (Compressor, error)
}

// Codec compresses objects with one Compressor. A store has one Codec for each type and training.
type Codec struct {
	compressor Compressor
	types      typeCache
}

// NewCodec returns a Codec that uses compressor.
func NewCodec(compressor Compressor) *Codec { return &Codec{compressor: compressor} }

// maxCompressed is the size limit of objects to compress, in bytes. API servers store no objects of this
// size; a Compressor can reject larger results of decompression.
const maxCompressed = 64 << 20

// Compress returns a compressed copy of the object. It returns the object itself if that saves no memory, or
// if the object is already compressed, larger than maxCompressed or without JSON.
func (c *Codec) Compress(o *Object) *Object {
	text, ok := o.JSON()
	if !ok || len(text) > maxCompressed {
		return o
	}
	buffer := buffers.Get().(*pooledBuffer)
	defer buffer.release()
	buffer.bytes = c.compressor.Compress(buffer.bytes, bytesOf(text))
	bodyLen := len(buffer.bytes)
	buffer.bytes = o.appendIdentity(buffer.bytes)
	if AllocationSize(len(buffer.bytes)) >= AllocationSize(len(o.slab)) {
		return o
	}
	return o.withBody(c.typeFor(o.info), string(buffer.bytes), bodyLen)
}

// appendIdentity appends the identity fields, labels and key, which stay uncompressed in every form.
func (o *Object) appendIdentity(slab []byte) []byte {
	slab = append(slab, o.slab[o.uidOffset:o.uidOffset+uint32(o.uidLen)]...)
	slab = append(slab, o.slab[o.versionOffset:o.versionOffset+uint32(o.versionLen)]...)
	slab = append(slab, o.slab[o.labelsOffset:o.labelsOffset+o.labelsLen]...)
	return append(slab, o.slab[o.keyOffset:]...)
}

// withBody returns the object with another body: slab is a body of bodyLen bytes and the result of
// appendIdentity. Both objects share their decoded copies.
func (o *Object) withBody(info *typeInfo, slab string, bodyLen int) *Object {
	next := &Object{slab: slab, info: info, bodyLen: uint32(bodyLen),
		uidLen: o.uidLen, versionLen: o.versionLen, labelsLen: o.labelsLen}
	next.setIdentityOffsets()
	next.state.Store(o.state.Load() & (maskNamespace | flagComplexLabels))
	next.decoded.Store(o.decoded.Load())
	return next
}

// setIdentityOffsets sets the offsets of the fields that appendIdentity appended after the body.
func (o *Object) setIdentityOffsets() {
	o.uidOffset = o.bodyLen
	o.versionOffset = o.uidOffset + uint32(o.uidLen)
	o.labelsOffset = o.versionOffset + uint32(o.versionLen)
	o.keyOffset = o.labelsOffset + o.labelsLen
}

// Decompress returns the object uncompressed, or itself if it is. It fails if the body is damaged.
func (o *Object) Decompress() (*Object, error) {
	if !o.Compressed() {
		return o, nil
	}
	if o.Block() != nil {
		return o.extract()
	}
	buffer := buffers.Get().(*pooledBuffer)
	defer buffer.release()
	var err error
	if buffer.bytes, err = o.appendJSON(buffer.bytes); err != nil {
		return nil, fmt.Errorf("decompress %s: %w", o.Key(), err)
	}
	bodyLen := len(buffer.bytes)
	buffer.bytes = o.appendIdentity(buffer.bytes)
	return o.withBody(uncompressedType(bytesOf(o.info.apiVersion), bytesOf(o.info.kind)),
		string(buffer.bytes), bodyLen), nil
}

func (c *Codec) typeFor(info *typeInfo) *typeInfo {
	return c.types.get(bytesOf(info.apiVersion), bytesOf(info.kind), func(apiVersion, kind string) *typeInfo {
		return &typeInfo{apiVersion: apiVersion, kind: kind, gvk: info.gvk, decodable: info.decodable,
			decoder: info.decoder, compressor: c.compressor}
	})
}
