package packed

import (
	"strings"
	"sync/atomic"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"
)

// Object is an immutable packed object. It implements runtime.Object and metav1.Object; the setters of
// metav1.Object panic. A Packer makes Objects.
type Object struct {
	// slab holds the body (JSON, possibly compressed), then the identity fields that the body does not
	// contain literally, then the key.
	slab string
	info *typeInfo
	// decoded refers to the decoded copies that are still in memory.
	decoded atomic.Pointer[decodedCopies]

	bodyLen   uint32 // length of the body, which starts at offset 0 of slab
	keyOffset uint32 // offset of the key, which ends slab

	uidOffset, versionOffset, labelsOffset uint32
	labelsLen                              uint32 // 0 if there are no labels
	uidLen, versionLen                     uint16
	// state holds the length of the namespace, flags and the age (see StartReadPeriod).
	state atomic.Uint32
}

const (
	maskNamespace = 1<<16 - 1
	// flagComplexLabels marks labels that have to be decoded: with escapes, not ASCII, or not strings.
	flagComplexLabels = 1 << 16
)

func (o *Object) namespaceLen() uint32 { return o.state.Load() & maskNamespace }

// Key returns the key of cache.MetaNamespaceKeyFunc: "namespace/name", or the name of a cluster-scoped
// object. The string shares the object's memory: clone it to keep it longer than the object.
func (o *Object) Key() string { return o.slab[o.keyOffset:] }

// WithKey returns the object with another key in the same namespace. Only Key and Name differ.
func (o *Object) WithKey(key string) *Object {
	next := &Object{slab: o.slab[:o.keyOffset] + key, info: o.info, bodyLen: o.bodyLen,
		keyOffset: o.keyOffset, uidOffset: o.uidOffset, versionOffset: o.versionOffset,
		labelsOffset: o.labelsOffset, labelsLen: o.labelsLen, uidLen: o.uidLen, versionLen: o.versionLen}
	next.state.Store(o.state.Load() & (maskNamespace | flagComplexLabels))
	next.decoded.Store(o.decoded.Load())
	return next
}

// Name returns metadata.name. The string shares the object's memory, as do Namespace, UID and Version.
func (o *Object) Name() string {
	if original := o.info.unpackableObject; original != nil {
		return original.GetName()
	}
	n := o.namespaceLen()
	if n == 0 {
		return o.slab[o.keyOffset:]
	}
	return o.slab[o.keyOffset+n+1:]
}

// Namespace returns metadata.namespace.
func (o *Object) Namespace() string {
	if original := o.info.unpackableObject; original != nil {
		return original.GetNamespace()
	}
	return o.slab[o.keyOffset : o.keyOffset+o.namespaceLen()]
}

// UID returns metadata.uid.
func (o *Object) UID() types.UID {
	if original := o.info.unpackableObject; original != nil {
		return original.GetUID()
	}
	return types.UID(o.slab[o.uidOffset : o.uidOffset+uint32(o.uidLen)])
}

// Version returns metadata.resourceVersion.
func (o *Object) Version() string {
	if original := o.info.unpackableObject; original != nil {
		return original.GetResourceVersion()
	}
	return o.slab[o.versionOffset : o.versionOffset+uint32(o.versionLen)]
}

// Compressed reports whether the object does not contain its JSON: reading it has to decompress the body, or
// to copy it out of a Block.
func (o *Object) Compressed() bool { return o.info.compressor != nil || o.info.block != nil }

// JSON returns the JSON without copying it. It returns "", false if the object is compressed or has no JSON.
func (o *Object) JSON() (string, bool) {
	if o.Compressed() || o.info.unpackableObject != nil {
		return "", false
	}
	return o.slab[:o.bodyLen], true
}

// AppendJSON appends the object's JSON to dst and marks the object as read. It fails if the compressed body
// is damaged, or if the object was made from values that JSON cannot represent.
func (o *Object) AppendJSON(dst []byte) ([]byte, error) {
	o.MarkRead()
	return o.appendJSON(dst)
}

func (o *Object) appendJSON(dst []byte) ([]byte, error) {
	switch {
	case o.info.unpackableObject != nil:
		return appendOriginal(dst, o.info.unpackableObject)
	case o.info.compressor != nil:
		return o.info.compressor.Decompress(dst, bytesOf(o.slab[:o.bodyLen]))
	case o.info.block != nil:
		dst, _, err := o.info.block.appendBody(dst, o)
		return dst, err
	}
	return append(dst, o.slab[:o.bodyLen]...), nil
}

// ReadJSON calls f with the object's JSON and marks the object as read. f must neither change nor retain the
// bytes. ReadJSON does not copy uncompressed JSON, and decompresses into a pooled buffer. It returns the
// error of f or of AppendJSON.
func (o *Object) ReadJSON(f func(json []byte) error) error {
	o.MarkRead()
	return o.PeekJSON(f)
}

// PeekJSON is ReadJSON without marking the object as read. The cache itself uses it.
func (o *Object) PeekJSON(f func(json []byte) error) error {
	if text, ok := o.JSON(); ok {
		return f(bytesOf(text))
	}
	buffer := buffers.Get().(*pooledBuffer)
	defer buffer.release()
	var err error
	if buffer.bytes, err = o.appendJSON(buffer.bytes); err != nil {
		return err
	}
	return f(buffer.bytes)
}

// Prefetch reads one byte of each cache line of the object's memory, to load it into the processor's cache.
// The result only keeps the compiler from removing the reads.
func (o *Object) Prefetch() (sum byte) {
	const cacheLine = 64
	for at := 0; at < len(o.slab); at += cacheLine {
		sum += o.slab[at]
	}
	return sum
}

// Len returns the length of the body in bytes; it is the compressed length if the object is compressed.
func (o *Object) Len() int { return int(o.bodyLen) }

// Size returns the object's size in bytes, without decoded copies and without up to 24 bytes that refer to
// them. For an object in a block it is an equal share of the block's memory.
func (o *Object) Size() int {
	if b := o.info.block; b != nil {
		return b.heapSize / len(b.objects)
	}
	size := int(unsafe.Sizeof(*o)) + AllocationSize(len(o.slab))
	if o.info.unpackableObject != nil {
		var decoded DecodedSize
		decoded.Add(o.info.unpackableObject.Object)
		size += int(decoded.Bytes)
	}
	return size
}

// bytesOf returns the bytes of text without copying. They must not be written to.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// textOf returns bytes as a string without copying. They must not be written to afterwards.
func textOf(bytes []byte) string { return unsafe.String(unsafe.SliceData(bytes), len(bytes)) }

func keyOf(namespace, name string) string {
	if namespace == "" {
		return strings.Clone(name)
	}
	return namespace + "/" + name
}
