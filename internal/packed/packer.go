package packed

import (
	"errors"
	"math"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// Packer packs objects. Its zero value leaves out nothing. It is safe for concurrent use.
type Packer struct {
	pruner *Pruner
	// held finds the object that is held under a key; nil: none is. It does not keep the key.
	held func(key string) *Object
	// wants tells which objects are packed, by their namespace and UID; nil: all.
	wants func(namespace, uid []byte) bool
	// listed returns the form in which a list holds an object; nil: as it was packed.
	listed func(*Object) *Object
}

// NewPacker returns a Packer that leaves out what pruner does; nil: nothing.
func NewPacker(pruner *Pruner) *Packer { return &Packer{pruner: pruner} }

// Reuse has the Packer return the object that held finds under a key in place of another with the same JSON:
// what is listed again takes no second room, not even for a moment. held must not keep the key. Reuse must be
// called before the Packer is used.
func (p *Packer) Reuse(held func(key string) *Object) { p.held = held }

// OnList sets a function that Listed calls for each object. It must be called before the Packer is used.
func (p *Packer) OnList(listed func(*Object) *Object) { p.listed = listed }

// Listed returns the form in which a list holds an object until the list is complete: compressed, for
// example.
func (p *Packer) Listed(o *Object) *Object {
	if p == nil || p.listed == nil {
		return o
	}
	return p.listed(o)
}

// Unwanted stands for an object that a Packer of Selecting was not asked to pack.
var Unwanted = &Object{class: &class{}}

// Selecting returns a Packer that does as p does, but for objects that are not wanted: of these TryNext and
// TryItem return Unwanted, without having allocated anything. The bytes are valid until wants returns; they
// are empty for what is not there.
func (p *Packer) Selecting(wants func(namespace, uid []byte) bool) *Packer {
	selecting := *p
	selecting.wants = wants
	return &selecting
}

// All returns a Packer that does as p does, with all objects.
func (p *Packer) All() *Packer {
	if p == nil || p.wants == nil {
		return p
	}
	return p.Selecting(nil)
}

// Pruner returns what the Packer leaves out; nil: nothing.
func (p *Packer) Pruner() *Pruner { return p.pruner }

// Pack packs the JSON of one object, which is copied. It fails where decoding into an
// *unstructured.Unstructured does, with the same error.
func (p *Packer) Pack(json []byte) (*Object, error) {
	if o := p.Try(json); o != nil {
		return o, nil
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(json); err != nil {
		return nil, err
	}
	return p.FromUnstructured(u)
}

// Try packs the JSON of one object of the usual form, and returns nil for other data, right or wrong.
func (p *Packer) Try(json []byte) *Object {
	o, end, _ := p.TryNext(json, 0)
	if o == nil || jsontext.Space(json, end) != len(json) {
		return nil
	}
	return o
}

// TryNext packs the object that begins at data[start], and returns the offset after it. Where it returns nil,
// more says that the reason may be that the data ends too early.
func (p *Packer) TryNext(data []byte, start int) (o *Object, end int, more bool) {
	return p.TryItem(data, start, "", "")
}

// TryItem is TryNext for the item of a list: items of built-in types lack kind and version, and get these.
func (p *Packer) TryItem(data []byte, start int, apiVersion, kind string) (o *Object, end int, more bool) {
	s := scanners.Get().(*scanner)
	defer s.release()
	found := &s.found
	if end = p.scan(s, data, start); end < 0 {
		return nil, 0, s.stopped == stopEnd
	}
	if p != nil && p.wants != nil && !p.wants(found.namespace.raw, found.uid.raw) {
		return Unwanted, end, false
	}
	if !found.hasKind && !found.hasVersion && kind != "" {
		return p.complete(data, start, end, apiVersion, kind), end, false
	}
	if !found.hasKind || !found.hasVersion {
		return nil, end, false
	}
	class := plainClass(found.apiVersion.raw, found.kind.raw)
	if !class.usual {
		return nil, end, false
	}
	if p != nil && p.held != nil {
		if o := s.reuse(start, end, p.held); o != nil {
			return o, end, false
		}
	}
	return s.build(start, end, class), end, false
}

// complete packs the object at data[start:end], which has neither kind nor version, with these.
func (p *Packer) complete(data []byte, start, end int, apiVersion, kind string) *Object {
	members := jsontext.Space(data, start+1)
	if data[members] == '}' {
		return nil
	}
	buffer := buffers.Get().(*buffer)
	defer buffer.release()
	text := append(buffer.bytes, `{"apiVersion":`...)
	text, ok := appendString(text, apiVersion)
	text = append(text, `,"kind":`...)
	text, also := appendString(text, kind)
	text = append(append(text, ','), data[members:end]...)
	buffer.bytes = text
	if !ok || !also {
		return nil
	}
	return p.All().Try(text)
}

// scan reads the object that begins at data[start], and returns the offset after it.
func (p *Packer) scan(s *scanner, data []byte, start int) int {
	s.data = data
	if p == nil || p.pruner == nil {
		return s.object(start, &s.found, nil)
	}
	return s.object(start, &s.found, p.pruner.root)
}

// maxSlab is the size of the largest objects that are packed.
const maxSlab = math.MaxInt32

// maxField is the length of the longest identifying field that is packed.
const maxField = math.MaxUint16

// build makes an object of a scan, or returns nil where it is too large.
func (s *scanner) build(start, end int, class *class) *Object {
	found := &s.found
	size := end - start
	for _, cut := range s.cuts {
		size -= cut.end - cut.start
	}
	body := size
	size += len(found.namespace.raw) + 1 + len(found.name.raw)
	if len(found.namespace.raw) == 0 {
		size--
	}
	for _, field := range [...]*value{&found.uid, &found.rv} {
		if field.at < 0 {
			size += len(field.raw)
		}
		if len(field.raw) > maxField {
			return nil
		}
	}
	if size > maxSlab || len(found.namespace.raw) > maxField {
		return nil
	}
	slab := make([]byte, 0, size)
	from := start
	for _, cut := range s.cuts {
		slab = append(slab, s.data[from:cut.start]...)
		from = cut.end
	}
	slab = append(slab, s.data[from:end]...)

	o := &Object{class: class, body: uint32(body)}
	o.uidAt, slab = s.place(start, &found.uid, slab)
	o.versionAt, slab = s.place(start, &found.rv, slab)
	o.uidLen, o.versionLen = uint16(len(found.uid.raw)), uint16(len(found.rv.raw))
	if o.labelsLen = uint32(found.labels.end - found.labels.start); o.labelsLen > 0 {
		o.labelsAt = s.moved(start, found.labels.start)
	}
	word := uint32(len(found.namespace.raw))
	if found.oddLabels {
		word |= flagOddLabels
	}
	o.word.Store(word)
	o.keyAt = uint32(len(slab))
	if len(found.namespace.raw) > 0 {
		slab = append(append(slab, found.namespace.raw...), '/')
	}
	slab = append(slab, found.name.raw...)
	o.slab = textOf(slab)
	return o
}

// place returns where a field is in the slab, and appends it where the JSON does not hold it literally.
func (s *scanner) place(start int, field *value, slab []byte) (uint32, []byte) {
	if field.at < 0 {
		return uint32(len(slab)), append(slab, field.raw...)
	}
	if len(field.raw) == 0 {
		return 0, slab
	}
	return s.moved(start, field.at), slab
}

// moved is where an offset of the data is in the slab.
func (s *scanner) moved(start, at int) uint32 {
	moved := at - start
	for _, cut := range s.cuts {
		if cut.start > at {
			break
		}
		moved -= cut.end - cut.start
	}
	return uint32(moved)
}

// errNil is for no object at all.
var errNil = errors.New("packing an object: there is none")

// FromUnstructured packs a decoded object, which must not be changed any more if JSON has no form for it:
// such an object is kept as it is. It fails for nil only.
func (p *Packer) FromUnstructured(u *unstructured.Unstructured) (*Object, error) {
	if u == nil {
		return nil, errNil
	}
	buffer := buffers.Get().(*buffer)
	defer buffer.release()
	text, ok := appendObject(buffer.bytes, u.Object)
	buffer.bytes = text
	if !ok {
		return p.keep(u), nil
	}
	s := scanners.Get().(*scanner)
	defer s.release()
	if p.scan(s, text, 0) < 0 {
		return p.keep(u), nil
	}
	if o := s.build(0, len(text), plainClass(s.found.apiVersion.raw, s.found.kind.raw)); o != nil {
		return o, nil
	}
	return p.keep(u), nil
}

// FromUnstructured packs a decoded object as it is; see Packer.FromUnstructured.
func FromUnstructured(u *unstructured.Unstructured) (*Object, error) {
	return (*Packer)(nil).FromUnstructured(u)
}

// keep makes an object of one that cannot be packed.
func (p *Packer) keep(u *unstructured.Unstructured) *Object {
	if p != nil && p.pruner != nil {
		u = copyOf(u)
		p.pruner.Apply(u)
	}
	c := &class{apiVersion: u.GetAPIVersion(), kind: u.GetKind(), decoder: sharedDecoder(), kept: u}
	return &Object{class: c, slab: keyOf(u.GetNamespace(), u.GetName())}
}

// maxPooled is the size up to which buffers are used again.
const maxPooled = 1 << 20

// buffer is memory for the time of one call.
type buffer struct{ bytes []byte }

var buffers = sync.Pool{New: func() any { return &buffer{bytes: make([]byte, 0, 4<<10)} }}

func (b *buffer) release() {
	if cap(b.bytes) > maxPooled {
		return
	}
	b.bytes = b.bytes[:0]
	buffers.Put(b)
}
