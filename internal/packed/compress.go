package packed

import "fmt"

// Compressor makes JSON smaller. All methods are safe for concurrent use. It has no name of its own, so that
// public packages can write it out in their documentation.
type Compressor = interface {
	// Compress appends the compressed form of src to dst.
	Compress(dst, src []byte) []byte
	// Decompress appends what Compress made src of to dst. src must not be changed.
	Decompress(dst, src []byte) ([]byte, error)
}

// Trainer makes Compressors.
type Trainer interface {
	// Train returns a Compressor that suits JSON like the samples, which must not be changed or kept. Objects
	// that were compressed with an earlier Compressor are decompressed with that one.
	Train(samples [][]byte) (Compressor, error)
}

// Codec is a Compressor with what the objects that it compresses have in common. A store has one for each
// type and training.
type Codec struct {
	compressor Compressor
	classes    classCache
}

// NewCodec returns a Codec.
func NewCodec(compressor Compressor) *Codec { return &Codec{compressor: compressor} }

// maxCompressed is the size of the largest objects that are compressed. API servers have none that large, and
// so a Compressor may bound the memory for what claims to be larger.
const maxCompressed = 64 << 20

// Compress returns the object compressed; the object itself where that would not save memory, where it is
// compressed already or very large, or where it has no JSON.
func (c *Codec) Compress(o *Object) *Object {
	text, ok := o.JSON()
	if !ok || len(text) > maxCompressed {
		return o
	}
	buffer := buffers.Get().(*buffer)
	defer buffer.release()
	buffer.bytes = c.compressor.Compress(buffer.bytes, bytesOf(text))
	body := len(buffer.bytes)
	buffer.bytes = o.appendIdentity(buffer.bytes)
	if Allocated(len(buffer.bytes)) >= Allocated(len(o.slab)) {
		return o
	}
	return o.inForm(c.class(o.class), string(buffer.bytes), body)
}

// appendIdentity appends what identifies the object and its labels, which are readable in every form.
func (o *Object) appendIdentity(slab []byte) []byte {
	slab = append(slab, o.slab[o.uidAt:o.uidAt+uint32(o.uidLen)]...)
	slab = append(slab, o.slab[o.versionAt:o.versionAt+uint32(o.versionLen)]...)
	slab = append(slab, o.slab[o.labelsAt:o.labelsAt+o.labelsLen]...)
	return append(slab, o.slab[o.keyAt:]...)
}

// inForm returns the object in another form: slab begins with a body, which class explains, and ends with
// what appendIdentity appended. Decoded copies that are in memory are those of both.
func (o *Object) inForm(class *class, slab string, body int) *Object {
	next := &Object{slab: slab, class: class, body: uint32(body), uidLen: o.uidLen, versionLen: o.versionLen,
		labelsLen: o.labelsLen}
	next.placeIdentity()
	next.word.Store(o.word.Load() & (maskNamespace | flagOddLabels))
	next.decoded.Store(o.decoded.Load())
	return next
}

// placeIdentity says where what appendIdentity appended is, behind a body.
func (o *Object) placeIdentity() {
	o.uidAt = o.body
	o.versionAt = o.uidAt + uint32(o.uidLen)
	o.labelsAt = o.versionAt + uint32(o.versionLen)
	o.keyAt = o.labelsAt + o.labelsLen
}

// Decompress returns a compressed object as it was before; another one as it is. It fails for one that is
// damaged.
func (o *Object) Decompress() (*Object, error) {
	if !o.Compressed() {
		return o, nil
	}
	if o.Block() != nil {
		return o.unfold()
	}
	buffer := buffers.Get().(*buffer)
	defer buffer.release()
	var err error
	if buffer.bytes, err = o.appendJSON(buffer.bytes); err != nil {
		return nil, fmt.Errorf("decompressing %s: %w", o.Key(), err)
	}
	body := len(buffer.bytes)
	buffer.bytes = o.appendIdentity(buffer.bytes)
	return o.inForm(plainClass(bytesOf(o.class.apiVersion), bytesOf(o.class.kind)),
		string(buffer.bytes), body), nil
}

// class is of with the codec's compressor.
func (c *Codec) class(of *class) *class {
	return c.classes.get(bytesOf(of.apiVersion), bytesOf(of.kind), func(apiVersion, kind string) *class {
		return &class{apiVersion: apiVersion, kind: kind, gvk: of.gvk, usual: of.usual, decoder: of.decoder,
			compressor: c.compressor}
	})
}
