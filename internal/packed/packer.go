package packed

import (
	"errors"
	"math"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// Packer packs objects. The zero value removes no fields. It is then safe for concurrent use.
type Packer struct {
	pruner *Pruner
	// lookup returns the cached object with a key, or nil. It is optional and does not retain the key.
	lookup func(key string) *Object
	// filter reports whether to pack an object with this namespace and UID. Optional.
	filter func(namespace, uid []byte) bool
	// convertListed converts an object that is part of a list. Optional.
	convertListed func(*Object) *Object
}

// NewPacker returns a Packer that removes the fields selected by pruner, which can be nil.
func NewPacker(pruner *Pruner) *Packer { return &Packer{pruner: pruner} }

// SetLookup makes the Packer return the cached object if it has the same JSON as the new one. A relist then
// needs no memory for unchanged objects. lookup returns the cached object with a key, or nil, and must not
// retain the key. Call SetLookup before using the Packer.
func (p *Packer) SetLookup(lookup func(key string) *Object) { p.lookup = lookup }

// SetListConversion sets the conversion that ForList applies. Call it before using the Packer.
func (p *Packer) SetListConversion(convert func(*Object) *Object) { p.convertListed = convert }

// ForList converts an object for buffering it in an incomplete list. The result can be compressed.
func (p *Packer) ForList(o *Object) *Object {
	if p == nil || p.convertListed == nil {
		return o
	}
	return p.convertListed(o)
}

// Filtered is the result of TryNext and TryItem for an object that the Packer's filter rejects.
var Filtered = &Object{info: &typeInfo{}}

// WithFilter returns a copy of p that packs only objects accepted by filter. TryNext and TryItem return
// Filtered for the others, without allocating. The bytes passed to filter are valid during the call, and
// empty if the field is missing.
func (p *Packer) WithFilter(filter func(namespace, uid []byte) bool) *Packer {
	filtered := *p
	filtered.filter = filter
	return &filtered
}

// Unfiltered returns p without its filter.
func (p *Packer) Unfiltered() *Packer {
	if p == nil || p.filter == nil {
		return p
	}
	return p.WithFilter(nil)
}

// Pruner returns the Packer's Pruner, which can be nil.
func (p *Packer) Pruner() *Pruner { return p.pruner }

// Pack packs the JSON of one object, which it copies. It returns the same errors as decoding into an
// *unstructured.Unstructured.
func (p *Packer) Pack(json []byte) (*Object, error) {
	if o := p.TryPack(json); o != nil {
		return o, nil
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(json); err != nil {
		return nil, err
	}
	return p.FromUnstructured(u)
}

// TryPack packs the JSON of one object on the fast path. It returns nil if the data is invalid or needs Pack.
func (p *Packer) TryPack(json []byte) *Object {
	o, end, _ := p.TryNext(json, 0)
	if o == nil || jsontext.SkipSpace(json, end) != len(json) {
		return nil
	}
	return o
}

// TryNext packs the object that begins at data[start] on the fast path and returns the offset after it. If it
// returns nil, truncated reports whether more data could complete the object.
func (p *Packer) TryNext(data []byte, start int) (o *Object, end int, truncated bool) {
	return p.TryItem(data, start, "", "")
}

// TryItem works like TryNext for an item of a list. apiVersion and kind are the defaults for an item without
// them, as in lists of built-in types.
func (p *Packer) TryItem(
	data []byte, start int, apiVersion, kind string) (o *Object, end int, truncated bool) {
	s := scanners.Get().(*scanner)
	defer s.release()
	identity := &s.identity
	if end = p.scan(s, data, start); end < 0 {
		return nil, 0, s.stopped == stopEnd
	}
	if p != nil && p.filter != nil && !p.filter(identity.namespace.raw, identity.uid.raw) {
		return Filtered, end, false
	}
	if !identity.hasKind && !identity.hasVersion && kind != "" {
		return p.packWithType(data, start, end, apiVersion, kind), end, false
	}
	if !identity.hasKind || !identity.hasVersion {
		return nil, end, false
	}
	info := uncompressedType(identity.apiVersion.raw, identity.kind.raw)
	if !info.decodable {
		return nil, end, false
	}
	if p != nil && p.lookup != nil {
		if o := s.reuseCached(start, end, p.lookup); o != nil {
			return o, end, false
		}
	}
	o = s.buildObject(start, end, info)
	if wholePacker := p.wholePacker(o); wholePacker != nil {
		return wholePacker.TryItem(data, start, apiVersion, kind)
	}
	return o, end, false
}

// wholePacker returns the Packer without the keep-list if wholeCondition selects o; otherwise nil.
func (p *Packer) wholePacker(o *Object) *Packer {
	if p == nil || p.pruner == nil || o == nil || !p.pruner.wholeCondition.matches(o) {
		return nil
	}
	wholePacker := *p
	wholePacker.pruner = p.pruner.wholePruner
	return &wholePacker
}

// packWithType packs the object at data[start:end] with apiVersion and kind added.
func (p *Packer) packWithType(data []byte, start, end int, apiVersion, kind string) *Object {
	membersStart := jsontext.SkipSpace(data, start+1)
	if data[membersStart] == '}' {
		return nil
	}
	buffer := buffers.Get().(*pooledBuffer)
	defer buffer.release()
	text := append(buffer.bytes, `{"apiVersion":`...)
	text, ok := appendString(text, apiVersion)
	text = append(text, `,"kind":`...)
	text, isKind := appendString(text, kind)
	text = append(append(text, ','), data[membersStart:end]...)
	buffer.bytes = text
	if !ok || !isKind {
		return nil
	}
	return p.Unfiltered().TryPack(text)
}

// scan scans the object that begins at data[start] into s.identity and returns the offset after it.
func (p *Packer) scan(s *scanner, data []byte, start int) int {
	s.data = data
	if start >= len(data) || data[start] != '{' {
		return s.fail(start)
	}
	var root *pruneNode
	if p != nil && p.pruner != nil {
		root = p.pruner.root
	}
	return s.scanObject(start, 0, rootObject, root)
}

// maxSlabLength limits the memory of an object, in bytes.
const maxSlabLength = math.MaxInt32

// maxFieldLength limits the length of the namespace, the UID and the resource version.
const maxFieldLength = math.MaxUint16

// buildObject makes an object from the result of a scan. It returns nil if the object exceeds a limit.
func (s *scanner) buildObject(start, end int, info *typeInfo) *Object {
	identity := &s.identity
	size := end - start
	for _, cut := range s.removedRanges {
		size -= cut.end - cut.start
	}
	bodyLen := size
	size += len(identity.namespace.raw) + 1 + len(identity.name.raw)
	if len(identity.namespace.raw) == 0 {
		size--
	}
	for _, field := range [...]*scannedString{&identity.uid, &identity.rv} {
		if field.offset < 0 {
			size += len(field.raw)
		}
		if len(field.raw) > maxFieldLength {
			return nil
		}
	}
	if size > maxSlabLength || len(identity.namespace.raw) > maxFieldLength {
		return nil
	}
	slab := make([]byte, 0, size)
	from := start
	for _, cut := range s.removedRanges {
		slab = append(slab, s.data[from:cut.start]...)
		from = cut.end
	}
	slab = append(slab, s.data[from:end]...)

	o := &Object{info: info, bodyLen: uint32(bodyLen)}
	o.uidOffset, slab = s.fieldOffset(start, &identity.uid, slab)
	o.versionOffset, slab = s.fieldOffset(start, &identity.rv, slab)
	o.uidLen, o.versionLen = uint16(len(identity.uid.raw)), uint16(len(identity.rv.raw))
	if o.labelsLen = uint32(identity.labels.end - identity.labels.start); o.labelsLen > 0 {
		o.labelsOffset = s.slabOffset(start, identity.labels.start)
	}
	state := uint32(len(identity.namespace.raw))
	if identity.complexLabels {
		state |= flagComplexLabels
	}
	o.state.Store(state)
	o.keyOffset = uint32(len(slab))
	if len(identity.namespace.raw) > 0 {
		slab = append(append(slab, identity.namespace.raw...), '/')
	}
	slab = append(slab, identity.name.raw...)
	o.slab = textOf(slab)
	return o
}

// fieldOffset returns the offset of a field in the slab. It appends a field that the JSON lacks.
func (s *scanner) fieldOffset(start int, field *scannedString, slab []byte) (uint32, []byte) {
	if field.offset < 0 {
		return uint32(len(slab)), append(slab, field.raw...)
	}
	if len(field.raw) == 0 {
		return 0, slab
	}
	return s.slabOffset(start, field.offset), slab
}

// slabOffset converts an offset of the data to an offset of the slab.
func (s *scanner) slabOffset(start, at int) uint32 {
	offset := at - start
	for _, cut := range s.removedRanges {
		if cut.start > at {
			break
		}
		offset -= cut.end - cut.start
	}
	return uint32(offset)
}

var errNilObject = errors.New("pack object: it is nil")

// FromUnstructured packs a decoded object. If JSON cannot represent it, the Object refers to u, which must
// not be changed afterwards. It fails only if u is nil.
func (p *Packer) FromUnstructured(u *unstructured.Unstructured) (*Object, error) {
	if u == nil {
		return nil, errNilObject
	}
	buffer := buffers.Get().(*pooledBuffer)
	defer buffer.release()
	text, ok := appendValue(buffer.bytes, u.Object, 0)
	buffer.bytes = text
	if !ok || u.Object == nil {
		return p.wrap(u), nil
	}
	s := scanners.Get().(*scanner)
	defer s.release()
	if p.scan(s, text, 0) < 0 {
		return p.wrap(u), nil
	}
	o := s.buildObject(0, len(text), uncompressedType(s.identity.apiVersion.raw, s.identity.kind.raw))
	if wholePacker := p.wholePacker(o); wholePacker != nil {
		return wholePacker.FromUnstructured(u)
	}
	if o != nil {
		return o, nil
	}
	return p.wrap(u), nil
}

// wrap returns an Object that refers to a decoded object that cannot be packed.
func (p *Packer) wrap(u *unstructured.Unstructured) *Object {
	if p != nil && p.pruner != nil {
		u = Copy(u)
		p.pruner.Apply(u)
	}
	info := &typeInfo{apiVersion: u.GetAPIVersion(), kind: u.GetKind(), decoder: sharedDecoder(),
		unpackableObject: u}
	return &Object{info: info, slab: keyOf(u.GetNamespace(), u.GetName())}
}

// maxPooledCapacity is the largest capacity of a pooled buffer.
const maxPooledCapacity = 1 << 20

type pooledBuffer struct{ bytes []byte }

var buffers = sync.Pool{New: func() any { return &pooledBuffer{bytes: make([]byte, 0, 4<<10)} }}

func (b *pooledBuffer) release() {
	if cap(b.bytes) > maxPooledCapacity {
		return
	}
	b.bytes = b.bytes[:0]
	buffers.Put(b)
}
