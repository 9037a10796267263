package packed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"
	"weak"
)

// A block stores many objects as two texts. The index has the identity and labels of each object. The bodies
// have their JSON without the fields in the index. Reading the index restores all objects; the bodies are
// opened when an object is read. UIDs do not compress, so the index stores them separately, in binary.

// BlockWriter collects the objects of a block. The zero value is ready to use.
type BlockWriter struct {
	types   []*typeInfo
	uids    []byte
	records []byte
	bodies  []byte
	record  []byte // scratch
	count   int
}

// Count returns the number of objects.
func (w *BlockWriter) Count() int { return w.count }

// Size returns the length of the bodies in bytes.
func (w *BlockWriter) Size() int { return len(w.bodies) }

// Reset removes all objects and keeps the memory for the next block.
func (w *BlockWriter) Reset() {
	w.types, w.uids, w.records, w.bodies, w.count = w.types[:0], w.uids[:0], w.records[:0], w.bodies[:0], 0
}

const (
	// maxBodiesLength limits the length of a block's bodies.
	maxBodiesLength = 64 << 20
	// maxBlockTypes limits the types of a block.
	maxBlockTypes = 1 << 8
	// minRecordLength is the minimum length of an object in the index: its length, and a layout.
	minRecordLength = 1 + 11
)

// Add adds an object to the block. It returns false if it cannot: the caller stores it as JSON.
func (w *BlockWriter) Add(o *Object) (bool, error) {
	if o.Compressed() {
		var uncompressed *Object
		err := o.PeekJSON(func(json []byte) error {
			uncompressed = (*Packer)(nil).TryPack(json)
			return nil
		})
		if err != nil || uncompressed == nil {
			return false, err
		}
		o = uncompressed
	}
	text, ok := o.JSON()
	if !ok || len(w.bodies)+len(text) > maxBodiesLength || len(w.types) == maxBlockTypes {
		return false, nil
	}
	l := layout{
		typeIndex: w.typeIndex(o.info), bodyOffset: len(w.bodies),
		complexLabels: o.state.Load()&flagComplexLabels != 0,
		namespaceLen:  int(o.namespaceLen()), keyLen: len(o.slab) - int(o.keyOffset),
		labels:  fieldRange{length: int(o.labelsLen)},
		uid:     o.fieldAt(o.uidOffset, uint32(o.uidLen)),
		version: o.fieldAt(o.versionOffset, uint32(o.versionLen)),
	}
	if o.labelsLen > 0 {
		l.labels = o.fieldAt(o.labelsOffset, o.labelsLen)
	}
	from := 0
	for _, cut := range l.cutFields() {
		w.bodies = append(w.bodies, text[from:cut.offset]...)
		from = cut.offset + cut.length
	}
	w.bodies = append(w.bodies, text[from:]...)
	l.bodyLen = len(w.bodies) - l.bodyOffset
	w.uids, l.binaryUID = AppendBinaryUID(w.uids, string(o.UID()))
	w.record = l.append(w.record[:0])
	at := len(w.record)
	w.record = o.appendIdentity(w.record)
	if l.binaryUID {
		w.record = slices.Delete(w.record, at, at+l.uid.length)
	}
	w.records = binary.AppendUvarint(w.records, uint64(len(w.record)))
	w.records = append(w.records, w.record...)
	w.count++
	return true, nil
}

// fieldAt returns the field at an offset of slab, with a negative offset if it is not part of the JSON.
func (o *Object) fieldAt(at, length uint32) fieldRange {
	if length == 0 || at >= o.bodyLen {
		return fieldRange{offset: -1, length: int(length)}
	}
	return fieldRange{offset: int(at), length: int(length)}
}

// typeIndex returns the index of t in the block's list of types, and adds t if necessary.
func (w *BlockWriter) typeIndex(t *typeInfo) int {
	if at := slices.Index(w.types, t); at >= 0 {
		return at
	}
	w.types = append(w.types, t)
	return len(w.types) - 1
}

// AppendBlock appends the index to dst, and returns it with the bodies, which are valid until Add or Reset.
func (w *BlockWriter) AppendBlock(dst []byte) (index, bodies []byte) {
	index = binary.AppendUvarint(dst, uint64(len(w.types)))
	for _, c := range w.types {
		for _, text := range []string{c.apiVersion, c.kind} {
			index = append(binary.AppendUvarint(index, uint64(len(text))), text...)
		}
	}
	index = binary.AppendUvarint(index, uint64(w.count))
	index = append(binary.AppendUvarint(index, uint64(len(w.uids))), w.uids...)
	return append(index, w.records...), w.bodies
}

// fieldRange is a string of an object. offset is its position in the JSON, and negative if it has none.
type fieldRange struct{ offset, length int }

// layout locates the parts of an object. A record of the index is a layout followed by the result of
// appendIdentity, without the UID if that is stored in binary.
type layout struct {
	typeIndex int
	// range of the object in the bodies
	bodyOffset, bodyLen  int
	uid, version, labels fieldRange
	namespaceLen, keyLen int
	complexLabels        bool
	binaryUID            bool // the UID is stored in binary
}

// cutFields returns the fields that are cut out of the JSON, in the order of their offsets.
func (l *layout) cutFields() []fieldRange {
	cuts := make([]fieldRange, 0, 3)
	for _, f := range [...]fieldRange{l.uid, l.version, l.labels} {
		if f.offset < 0 || f.length == 0 {
			continue
		}
		at := len(cuts)
		for at > 0 && cuts[at-1].offset > f.offset {
			at--
		}
		cuts = slices.Insert(cuts, at, f)
	}
	return cuts
}

func (l *layout) append(to []byte) []byte {
	flags := 0
	if l.complexLabels {
		flags |= 1
	}
	if l.binaryUID {
		flags |= 2
	}
	for _, number := range [...]int{
		l.typeIndex, l.bodyOffset, l.bodyLen, l.uid.offset + 1, l.uid.length, l.version.offset +
			1, l.version.length, l.labels.offset + 1, l.labels.length,
		l.namespaceLen<<2 | flags, l.keyLen,
	} {
		to = binary.AppendUvarint(to, uint64(number))
	}
	return to
}

var errDamagedBlock = errors.New("the block is damaged")

// readLayout decodes the layout at the start of a record, and returns its length. The caller checks the rest.
func readLayout(record string) (l layout, length int, err error) {
	rest := record
	var numbers [11]int
	for k := range numbers {
		number, ok := consumeVarint(&rest)
		if !ok {
			return l, 0, errDamagedBlock
		}
		numbers[k] = number
	}
	l = layout{
		typeIndex: numbers[0], bodyOffset: numbers[1], bodyLen: numbers[2],
		uid:     fieldRange{numbers[3] - 1, numbers[4]},
		version: fieldRange{numbers[5] - 1, numbers[6]}, labels: fieldRange{numbers[7] - 1, numbers[8]},
		namespaceLen: numbers[9] >> 2, complexLabels: numbers[9]&1 != 0, binaryUID: numbers[9]&2 != 0,
		keyLen: numbers[10],
	}
	if l.uid.length > maxFieldLength || l.version.length > maxFieldLength ||
		l.namespaceLen > maxFieldLength || l.namespaceLen >= l.keyLen && l.namespaceLen > 0 ||
		l.binaryUID && l.uid.length != uidLength {
		return l, 0, errDamagedBlock
	}
	return l, len(record) - len(rest), nil
}

// identityLen returns the length of the part of a record that follows the layout.
func (l *layout) identityLen() int64 {
	length := int64(l.version.length) + int64(l.labels.length) + int64(l.keyLen)
	if !l.binaryUID {
		length += int64(l.uid.length)
	}
	return length
}

func consumeVarint(text *string) (int, bool) {
	n := uint64(0)
	for i := 0; i < len(*text) && i < 5; i++ {
		b := (*text)[i]
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			*text = (*text)[i+1:]
			return int(n), n <= maxSlabLength
		}
	}
	return 0, false
}

// consumeString consumes a varint and a string of that length.
func consumeString(text *string) (string, bool) {
	n, ok := consumeVarint(text)
	if !ok || n > len(*text) {
		return "", false
	}
	found := (*text)[:n]
	*text = (*text)[n:]
	return found, true
}

// Block holds the bodies of its objects and their identities. Both stay in memory while one is in use.
type Block struct {
	openBodies func() ([]byte, error)
	// heapSize is the block's heap size in bytes, with its objects. bodiesSize is the length of the bodies.
	heapSize, bodiesSize int
	// opened caches the result of openBodies until the garbage collector frees it.
	opened  atomic.Pointer[weak.Pointer[openedBodies]]
	objects []Object
}

type openedBodies struct{ bodies []byte }

// ReadBlock returns the objects described by a block's index, and copies the index. The objects count as
// compressed. bodies returns the block's bodies. It is called while objects of the block are in use, and must
// be safe for concurrent use. size is the size in bytes of the memory that it retains.
func ReadBlock(index []byte, bodies func() ([]byte, error), size int) ([]*Object, error) {
	b := &Block{openBodies: bodies, heapSize: AllocationSize(size)}
	rest := textOf(index)
	count, ok := consumeVarint(&rest)
	if !ok || count > maxBlockTypes {
		return nil, errDamagedBlock
	}
	types := make([]*typeInfo, count)
	for k := range types {
		apiVersion, ok := consumeString(&rest)
		kind, isKind := consumeString(&rest)
		if !ok || !isKind {
			return nil, errDamagedBlock
		}
		info := *uncompressedType(bytesOf(apiVersion), bytesOf(kind))
		info.block = b
		types[k] = &info
	}
	if count, ok = consumeVarint(&rest); !ok || count > len(rest)/minRecordLength {
		return nil, errDamagedBlock
	}
	b.objects = make([]Object, count)
	if err := b.decodeObjects(rest, types); err != nil {
		return nil, err
	}
	objects := make([]*Object, count)
	for k := range b.objects {
		objects[k] = &b.objects[k]
	}
	return objects, nil
}

// decodeObjects decodes the UIDs and records of an index into b.objects.
func (b *Block) decodeObjects(rest string, types []*typeInfo) error {
	uids, ok := consumeString(&rest)
	if !ok {
		return errDamagedBlock
	}
	// All slabs are parts of one allocation, so it must not grow while they are cut out of it.
	text := make([]byte, 0, len(rest)+len(uids)/binaryUIDLength*uidLength)
	for k := range b.objects {
		record, ok := consumeString(&rest)
		if !ok {
			return errDamagedBlock
		}
		l, length, err := readLayout(record)
		if err != nil || l.typeIndex >= len(types) || l.identityLen() != int64(len(record)-length) ||
			l.bodyOffset != b.bodiesSize {
			return errDamagedBlock
		}
		start := len(text)
		text = append(text, record[:length]...)
		if l.binaryUID {
			if len(uids) < binaryUIDLength {
				return errDamagedBlock
			}
			text = AppendUID(text, uids[:binaryUIDLength])
			uids = uids[binaryUIDLength:]
		}
		text = append(text, record[length:]...)
		b.objects[k].init(textOf(text[start:]), types[l.typeIndex], &l, length)
		b.bodiesSize += l.bodyLen
	}
	if rest != "" || uids != "" {
		return errDamagedBlock
	}
	b.heapSize += int(unsafe.Sizeof(*b)) + len(types)*int(unsafe.Sizeof(typeInfo{})) +
		AllocationSize(len(b.objects)*int(unsafe.Sizeof(Object{}))) + AllocationSize(cap(text))
	return nil
}

// init sets the object's fields. slab begins with an encoded layout of the given length.
func (o *Object) init(slab string, info *typeInfo, l *layout, length int) {
	o.slab, o.info, o.bodyLen = slab, info, uint32(length)
	o.uidLen, o.versionLen, o.labelsLen = uint16(l.uid.length), uint16(l.version.length),
		uint32(l.labels.length)
	o.setIdentityOffsets()
	state := uint32(l.namespaceLen)
	if l.complexLabels {
		state |= flagComplexLabels
	}
	o.state.Store(state)
}

func (b *Block) cachedBodies() ([]byte, error) {
	if cachedPointer := b.opened.Load(); cachedPointer != nil {
		if cached := cachedPointer.Value(); cached != nil {
			return cached.bodies, nil
		}
	}
	bodies, err := b.openBodies()
	if err != nil {
		return nil, err
	}
	last := weak.Make(&openedBodies{bodies})
	b.opened.Store(&last)
	return bodies, nil
}

// appendBody appends the JSON of an object of the block and returns the object's layout.
func (b *Block) appendBody(dst []byte, o *Object) ([]byte, layout, error) {
	l, _, err := readLayout(o.slab)
	if err != nil {
		return dst, l, err
	}
	bodies, err := b.cachedBodies()
	if err != nil {
		return dst, l, fmt.Errorf("read %s: %w", o.Key(), err)
	}
	if l.bodyLen > len(bodies) || l.bodyOffset > len(bodies)-l.bodyLen {
		return dst, l, errDamagedBlock
	}
	body, start := bodies[l.bodyOffset:l.bodyOffset+l.bodyLen], len(dst)
	for _, cut := range l.cutFields() {
		prefixLength := cut.offset - (len(dst) - start)
		if prefixLength < 0 || prefixLength > len(body) {
			return dst, l, errDamagedBlock
		}
		dst = append(dst, body[:prefixLength]...)
		body = body[prefixLength:]
		switch cut {
		case l.uid:
			dst = append(dst, o.UID()...)
		case l.version:
			dst = append(dst, o.Version()...)
		default:
			dst = append(dst, o.labelsJSON()...)
		}
	}
	return append(dst, body...), l, nil
}

// Block returns the block that contains the object, or nil.
func (o *Object) Block() *Block { return o.info.block }

// BodiesSize returns the length of the bodies.
func (b *Block) BodiesSize() int { return b.bodiesSize }

// JSONSize returns the length of the object's JSON, or 0 if it is compressed alone or has none.
func (o *Object) JSONSize() int {
	if o.info.block == nil {
		json, _ := o.JSON()
		return len(json)
	}
	l, _, err := readLayout(o.slab)
	if err != nil { // its text was damaged when it was read
		return 0
	}
	size := l.bodyLen
	for _, f := range [...]fieldRange{l.uid, l.version, l.labels} {
		if f.offset >= 0 {
			size += f.length
		}
	}
	return size
}

// Objects calls yield for each object of the block.
func (b *Block) Objects(yield func(*Object) bool) {
	for k := range b.objects {
		if !yield(&b.objects[k]) {
			return
		}
	}
}

// extract returns an object of a block as the Packer would have made it, without a reference to the block.
func (o *Object) extract() (*Object, error) {
	buffer := buffers.Get().(*pooledBuffer)
	defer buffer.release()
	text, l, err := o.info.block.appendBody(buffer.bytes, o)
	if err != nil {
		return nil, err
	}
	next := &Object{
		info: uncompressedType(bytesOf(o.info.apiVersion), bytesOf(o.info.kind)), bodyLen: uint32(len(text)),
		uidLen: o.uidLen, versionLen: o.versionLen, labelsLen: o.labelsLen,
	}
	var slab strings.Builder
	missing := 0 // length of the fields that are not in the JSON
	for _, f := range []fieldRange{l.uid, l.version, l.labels} {
		if f.offset < 0 {
			missing += f.length
		}
	}
	slab.Grow(len(text) + missing + l.keyLen)
	slab.Write(text)
	offsetOf := func(f fieldRange, value string) uint32 {
		if f.offset >= 0 || f.length == 0 {
			return uint32(max(f.offset, 0))
		}
		at := slab.Len()
		slab.WriteString(value)
		return uint32(at)
	}
	next.uidOffset = offsetOf(l.uid, string(o.UID()))
	next.versionOffset = offsetOf(l.version, o.Version())
	next.labelsOffset = offsetOf(l.labels, o.labelsJSON())
	next.keyOffset = uint32(slab.Len())
	slab.WriteString(o.Key())
	next.slab = slab.String()
	buffer.bytes = text
	next.state.Store(o.state.Load() & (maskNamespace | flagComplexLabels))
	next.decoded.Store(o.decoded.Load())
	return next, nil
}
