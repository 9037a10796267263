package packed

import (
	"strings"
	"sync/atomic"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"
)

// Object is one packed object. What it shows never changes. Besides the methods of metav1.Object, of which
// those that set something panic, it is a runtime.Object. Use a Packer to make one.
type Object struct {
	// slab holds, in this order, the JSON (compressed or not), strings that the JSON does not hold literally,
	// and the key. It is a string because strings cannot be written to.
	slab  string
	class *class
	// decoded are the copies that Unstructured made and KeepDecoded was given last.
	decoded atomic.Pointer[forms]

	body  uint32 // the length of the JSON, from the beginning of slab
	keyAt uint32 // the key goes from here to the end of slab

	uidAt, versionAt, labelsAt uint32
	labelsLen                  uint32 // 0: there are none
	uidLen, versionLen         uint16
	// word holds the length of the namespace, flags, and what Age tells of.
	word atomic.Uint32
}

const (
	maskNamespace = 1<<16 - 1
	// flagOddLabels is for labels whose text is not what they are: with escapes, or not ASCII.
	flagOddLabels = 1 << 16
)

// namespaceLen is the length of the namespace.
func (o *Object) namespaceLen() uint32 { return o.word.Load() & maskNamespace }

// Key is "namespace/name", or the name of what has no namespace: what cache.MetaNamespaceKeyFunc returns. It
// is a part of the object's memory: who keeps it without the object clones it.
func (o *Object) Key() string { return o.slab[o.keyAt:] }

// Name is metadata.name, Namespace metadata.namespace, UID metadata.uid and Version metadata.resourceVersion,
// each as a part of the object's memory, as Key is.
func (o *Object) Name() string {
	if kept := o.class.kept; kept != nil {
		return kept.GetName()
	}
	n := o.namespaceLen()
	if n == 0 {
		return o.slab[o.keyAt:]
	}
	return o.slab[o.keyAt+n+1:]
}

// Namespace is metadata.namespace; see Name.
func (o *Object) Namespace() string {
	if kept := o.class.kept; kept != nil {
		return kept.GetNamespace()
	}
	return o.slab[o.keyAt : o.keyAt+o.namespaceLen()]
}

// UID is metadata.uid; see Name.
func (o *Object) UID() types.UID {
	if kept := o.class.kept; kept != nil {
		return kept.GetUID()
	}
	return types.UID(o.slab[o.uidAt : o.uidAt+uint32(o.uidLen)])
}

// Version is metadata.resourceVersion; see Name.
func (o *Object) Version() string {
	if kept := o.class.kept; kept != nil {
		return kept.GetResourceVersion()
	}
	return o.slab[o.versionAt : o.versionAt+uint32(o.versionLen)]
}

// Compressed reports whether reading the object costs decompressing it.
func (o *Object) Compressed() bool { return o.class.compressor != nil || o.class.block != nil }

// JSON returns the JSON of an object that is not compressed, without copying, and "", false for others.
func (o *Object) JSON() (string, bool) {
	if o.Compressed() || o.class.kept != nil {
		return "", false
	}
	return o.slab[:o.body], true
}

// AppendJSON appends the JSON of the object. Compressed objects are decompressed: an error says that they are
// damaged. Objects that were made of what JSON has no form for may fail, too. It counts as a read.
func (o *Object) AppendJSON(dst []byte) ([]byte, error) {
	o.MarkRead()
	return o.appendJSON(dst)
}

func (o *Object) appendJSON(dst []byte) ([]byte, error) {
	switch {
	case o.class.kept != nil:
		return appendKept(dst, o.class.kept)
	case o.class.compressor != nil:
		return o.class.compressor.Decompress(dst, bytesOf(o.slab[:o.body]))
	case o.class.block != nil:
		dst, _, err := o.class.block.appendBody(dst, o)
		return dst, err
	}
	return append(dst, o.slab[:o.body]...), nil
}

// View calls f with the JSON of the object, which f must neither change nor keep. It costs no copy where the
// object is not compressed, and no allocation where it is. The error is f's, or AppendJSON's. It counts as a
// read.
func (o *Object) View(f func(json []byte) error) error {
	o.MarkRead()
	return o.Peek(f)
}

// Peek is View for what the cache itself does with an object: it does not count as a read.
func (o *Object) Peek(f func(json []byte) error) error {
	if text, ok := o.JSON(); ok {
		return f(bytesOf(text))
	}
	buffer := buffers.Get().(*buffer)
	defer buffer.release()
	var err error
	if buffer.bytes, err = o.appendJSON(buffer.bytes); err != nil {
		return err
	}
	return f(buffer.bytes)
}

// Touch reads a little of all of the object's memory, so that it is in the processor's cache. The result
// means nothing.
func (o *Object) Touch() (touched byte) {
	const line = 64 // bytes that come together
	for at := 0; at < len(o.slab); at += line {
		touched += o.slab[at]
	}
	return touched
}

// Len is the length of the JSON that is kept; of a compressed object the compressed one.
func (o *Object) Len() int { return int(o.body) }

// Size is how many bytes of heap the object occupies, without a decoded copy. Objects that Unstructured has
// been called for occupy up to 24 more. Of an object in a block it is the object's share of that.
func (o *Object) Size() int {
	if b := o.class.block; b != nil {
		return b.share(o)
	}
	size := int(unsafe.Sizeof(*o)) + Allocated(len(o.slab))
	if o.class.kept != nil {
		size += weigh(o.class.kept.Object)
	}
	return size
}

// bytesOf returns the bytes of text, which must not be written to.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// textOf makes a string of bytes that are not written to any more.
func textOf(bytes []byte) string { return unsafe.String(unsafe.SliceData(bytes), len(bytes)) }

// keyOf is the key of an object with this name.
func keyOf(namespace, name string) string {
	if namespace == "" {
		return strings.Clone(name)
	}
	return namespace + "/" + name
}
