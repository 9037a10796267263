package packed

// Compressor makes JSON smaller. All methods are safe for concurrent use. It has no name of its own, so that public
// packages can write it out in their documentation.
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

// Codec is a Compressor with what the objects that it compresses have in common. A store has one for each type
// and training.
type Codec struct {
	compressor Compressor
	classes    classCache
}

// NewCodec returns a Codec.
func NewCodec(compressor Compressor) *Codec { return &Codec{compressor: compressor} }

// maxCompressed is the size of the largest objects that are compressed. API servers have none that large, and so a
// Compressor may bound the memory for what claims to be larger.
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
	slab := c.compressor.Compress(buffer.bytes, bytesOf(text))
	buffer.bytes = slab
	body := len(slab)
	packed := &Object{body: uint32(body), namespaceLen: o.namespaceLen, uidLen: o.uidLen, versionLen: o.versionLen, labelsLen: o.labelsLen, flags: o.flags}
	move := func(at uint32, length int) uint32 {
		to := len(slab)
		slab = append(slab, o.slab[at:int(at)+length]...)
		return uint32(to)
	}
	packed.uidAt = move(o.uidAt, int(o.uidLen))
	packed.versionAt = move(o.versionAt, int(o.versionLen))
	packed.labelsAt = move(o.labelsAt, int(o.labelsLen))
	packed.keyAt = move(o.keyAt, len(o.slab)-int(o.keyAt))
	buffer.bytes = slab
	if Allocated(len(slab)) >= Allocated(len(o.slab)) {
		return o
	}
	packed.slab = string(slab)
	packed.class = c.class(o.class)
	return packed
}

// class is of with the codec's compressor.
func (c *Codec) class(of *class) *class {
	return c.classes.get(bytesOf(of.apiVersion), bytesOf(of.kind), func(apiVersion, kind string) *class {
		return &class{apiVersion: apiVersion, kind: kind, gvk: of.gvk, usual: of.usual, decoder: of.decoder, compressor: c.compressor}
	})
}
