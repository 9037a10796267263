package decode

import (
	"bytes"
	"reflect"
	"sync"
	"unsafe"

	"sigs.k8s.io/json"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// Decoder decodes JSON into one struct type. It is safe for concurrent use.
type Decoder struct {
	codec codec
	// rootStruct is the struct that codec decodes, or nil if the type decodes itself.
	rootStruct *structCodec
}

// codec decodes the value at i into the zero value at p, and returns the end of the JSON. It returns failed
// if the caller has to use sigs.k8s.io/json instead.
type codec func(d *document, i int, p unsafe.Pointer) int

// failedOffset replaces an offset. It stays negative when something is added to it.
const failedOffset = -1 << 30

var decoders sync.Map

// DecoderFor returns the decoder of a struct type. It compiles each type once.
func DecoderFor(typ reflect.Type) *Decoder {
	if cached, ok := decoders.Load(typ); ok {
		return cached.(*Decoder)
	}
	c := newCompiler()
	codec := c.codec(typ)
	made, _ := decoders.LoadOrStore(typ, &Decoder{codec, c.structs[typ]})
	return made.(*Decoder)
}

// Decode decodes data into the zero value that out points to. data must be valid JSON without duplicate
// keys: decoding stops when all fields of the struct are filled. out does not alias data.
func (d *Decoder) Decode(data []byte, out reflect.Value) error {
	doc := documents.Get().(*document)
	defer doc.release()
	return d.decode(doc, data, out)
}

type JSONReader interface {
	// ReadJSON calls read with the JSON. It returns read's error or its own.
	ReadJSON(read func(json []byte) error) error
}

func (d *Decoder) DecodeView(from JSONReader, out reflect.Value) error {
	doc := documents.Get().(*document)
	defer doc.release()
	doc.decoder, doc.target = d, out
	return from.ReadJSON(doc.view)
}

func (d *Decoder) decode(doc *document, data []byte, out reflect.Value) error {
	doc.data, doc.outermost = data, d.rootStruct
	if end := d.codec(doc, doc.skipSpace(0), out.UnsafePointer()); end >= 0 &&
		doc.skipSpace(end) == len(data) {
		return nil
	}
	out.Elem().SetZero()
	return json.UnmarshalCaseSensitivePreserveInts(bytes.Clone(data), out.Interface())
}

// document is the decoding state of one document, with memory that is reused.
type document struct {
	data []byte
	// outermost is the outermost struct until its decoding starts; decoding ends when it has all its fields.
	outermost *structCodec

	// view calls decoder.decode with out. It is created once, so that DecodeView does not allocate.
	view    func(json []byte) error
	decoder *Decoder
	target  reflect.Value

	// arena is memory for short strings, of which several share one allocation. It is small, because each
	// string pins all of it.
	arena     []byte
	unescaped []byte // an unescaped string
}

const (
	arenaSize    = 256
	maxShortText = 64
	// maxUnescaped limits the buffer for unescaped strings that is kept for reuse.
	maxUnescaped = 64 << 10
)

var documents = sync.Pool{New: func() any {
	d := &document{}
	d.view = func(json []byte) error { return d.decoder.decode(d, json, d.target) }
	return d
}}

// release returns a document to the pool, without references to the caller's data.
func (d *document) release() {
	d.data, d.outermost, d.decoder, d.target = nil, nil, nil, reflect.Value{}
	if cap(d.unescaped) > maxUnescaped {
		d.unescaped = nil
	}
	documents.Put(d)
}

// skipSpace returns the offset of the next byte that is not white space.
func (d *document) skipSpace(i int) int {
	if i < 0 || i < len(d.data) && d.data[i] > ' ' { // API servers send no white space
		return i
	}
	return jsontext.SkipSpace(d.data, i)
}

// byteAt returns the byte at i, or 0 if i is out of range.
func (d *document) byteAt(i int) byte {
	if i < 0 || i >= len(d.data) {
		return 0
	}
	return d.data[i]
}

// copyText returns a string that does not alias the data.
func (d *document) copyText(text []byte) string {
	if len(text) == 0 || len(text) > maxShortText {
		return string(text)
	}
	if len(d.arena) < len(text) {
		d.arena = make([]byte, arenaSize)
	}
	n := copy(d.arena, text)
	owned := unsafe.String(unsafe.SliceData(d.arena), n)
	d.arena = d.arena[n:]
	return owned
}

func (d *document) skip(i int) int {
	const levels = 10000
	if i < 0 {
		return failedOffset
	}
	end, deep := jsontext.Skip(d.data, i, levels)
	if deep || end < 0 {
		return failedOffset
	}
	return end
}

// null returns the end of the null at i, or failed.
func (d *document) null(i int) int {
	if end := jsontext.ScanLiteral(d.data, i, "null"); end >= 0 {
		return end
	}
	return failedOffset
}

// hasNext reads the comma or the closing bracket at i. next is the offset of the next element, or of the end.
func (d *document) hasNext(i int, closing byte) (next int, hasNext bool) {
	i = d.skipSpace(i)
	switch d.byteAt(i) {
	case ',':
		return d.skipSpace(i + 1), true
	case closing:
		return i + 1, false
	}
	return failedOffset, false
}
