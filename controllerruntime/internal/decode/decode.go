package decode

import (
	"bytes"
	"reflect"
	"sync"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// Decoder decodes into one type of struct. It is safe for concurrent use.
type Decoder struct {
	codec codec
	// top is the struct that codec decodes; nil for one that decodes itself.
	top *structCodec
}

// codec decodes the value at i, which is there, into what p points to, and returns the end of it; failed
// where that is for sigs.k8s.io/json to do. What p points to is zero.
type codec func(d *document, i int, p unsafe.Pointer) int

// failed is returned in place of an offset. It stays negative when something is added to it.
const failed = -1 << 30

// decoders has a *Decoder for each type that was asked for.
var decoders sync.Map

// For returns the decoder of a type of struct.
func For(typ reflect.Type) *Decoder {
	if known, ok := decoders.Load(typ); ok {
		return known.(*Decoder)
	}
	c := newCompiler()
	codec := c.codec(typ)
	made, _ := decoders.LoadOrStore(typ, &Decoder{codec, c.structs[typ]})
	return made.(*Decoder)
}

// Decode decodes data into what out points to, which has to be zero. Data has to be valid JSON, whose object
// has no key twice: what follows when all fields of the struct have come is not looked at. Nothing of data is
// kept.
func (d *Decoder) Decode(data []byte, out reflect.Value) error {
	doc := documents.Get().(*document)
	defer doc.release()
	return d.decode(doc, data, out)
}

// Viewer has JSON to look at, as Decode takes it.
type Viewer interface {
	// View calls read with the JSON, and returns its error or one of its own.
	View(read func(json []byte) error) error
}

// DecodeView is Decode for what from has.
func (d *Decoder) DecodeView(from Viewer, out reflect.Value) error {
	doc := documents.Get().(*document)
	defer doc.release()
	doc.decoder, doc.out = d, out
	return from.View(doc.view)
}

func (d *Decoder) decode(doc *document, data []byte, out reflect.Value) error {
	doc.data, doc.top = data, d.top
	if end := d.codec(doc, doc.space(0), out.UnsafePointer()); end >= 0 && doc.space(end) == len(data) {
		return nil
	}
	out.Elem().SetZero()
	return json.UnmarshalCaseSensitivePreserveInts(bytes.Clone(data), out.Interface())
}

// document is what is being decoded, and memory that one after the other uses up.
type document struct {
	data []byte
	// top is the struct that ends the document when it has all its fields; nil below it.
	top *structCodec

	// view decodes with decoder into out. It is made once, so that DecodeView makes none.
	view    func(json []byte) error
	decoder *Decoder
	out     reflect.Value

	// room is what is left of the memory in which short strings are put together, so that one allocation
	// serves several. It is small, because whoever keeps one of them keeps all.
	room []byte
	// times are what pointers to times point to, several in one allocation likewise.
	times []metav1.Time
	text  []byte // a string without its escapes
}

const (
	roomSize   = 256
	shortTexts = 64
	roomTimes  = 8
	// maxText is how much memory for strings with escapes is kept for other documents.
	maxText = 64 << 10
)

// documents are for the next ones to decode.
var documents = sync.Pool{New: func() any {
	d := &document{}
	d.view = func(json []byte) error { return d.decoder.decode(d, json, d.out) }
	return d
}}

// release ends the use of a document. It refers to nothing then but what is left of its memory.
func (d *document) release() {
	d.data, d.top, d.decoder, d.out = nil, nil, nil, reflect.Value{}
	if cap(d.text) > maxText {
		d.text = nil
	}
	documents.Put(d)
}

// space returns the offset of what follows white space.
func (d *document) space(i int) int {
	if i >= 0 && i < len(d.data) && d.data[i] > ' ' { // API servers send none
		return i
	}
	if i < 0 {
		return i
	}
	return jsontext.Space(d.data, i)
}

// at returns the byte at i, or 0 where there is none.
func (d *document) at(i int) byte {
	if i < 0 || i >= len(d.data) {
		return 0
	}
	return d.data[i]
}

// own returns text as a string that does not refer to the data.
func (d *document) own(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	if len(text) > shortTexts {
		return string(text)
	}
	if len(d.room) < len(text) {
		d.room = make([]byte, roomSize)
	}
	n := copy(d.room, text)
	owned := unsafe.String(unsafe.SliceData(d.room), n)
	d.room = d.room[n:]
	return owned
}

// skip returns the end of the value at i.
func (d *document) skip(i int) int {
	const levels = 10000
	if i < 0 {
		return failed
	}
	end, deep := jsontext.Skip(d.data, i, levels)
	if deep || end < 0 {
		return failed
	}
	return end
}

// null returns the end of the null at i, or failed where there is something else.
func (d *document) null(i int) int {
	if end := jsontext.Word(d.data, i, "null"); end >= 0 {
		return end
	}
	return failed
}

// more takes what follows an element at i: a comma and the beginning of the next one, or the closing bracket.
func (d *document) more(i int, closing byte) (next int, more bool) {
	i = d.space(i)
	switch d.at(i) {
	case ',':
		return d.space(i + 1), true
	case closing:
		return i + 1, false
	}
	return failed, false
}
