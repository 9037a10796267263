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

// A block is how objects are kept outside memory: in two texts, of which the head has what identifies each
// object and its labels, and the bodies have the rest. Who reads the head has the objects, and the bodies
// need not be read, nor even be decompressed, before somebody reads one of them. What the head has is cut out
// of the JSON in the bodies. UIDs, which nothing compresses, are taken out of the head's records, as numbers.

// BlockWriter collects the objects of a block. Its zero value is ready for use; Reset makes it so again.
type BlockWriter struct {
	classes []*class
	uids    []byte
	records []byte
	bodies  []byte
	record  []byte // memory for reuse
	count   int
}

// Count is how many objects there are, and Size what their bodies come to.
func (w *BlockWriter) Count() int { return w.count }
func (w *BlockWriter) Size() int  { return len(w.bodies) }

// Reset forgets all objects.
func (w *BlockWriter) Reset() {
	w.classes, w.uids, w.records, w.bodies, w.count = w.classes[:0], w.uids[:0], w.records[:0],
		w.bodies[:0], 0
}

// maxBodies is what the bodies of a block come to at most.
const maxBodies = 1 << 30

// Add adds an object. It returns false for one that blocks cannot take, which has to be kept as JSON.
func (w *BlockWriter) Add(o *Object) (bool, error) {
	if o.Compressed() {
		var plain *Object
		err := o.Peek(func(json []byte) error {
			plain = (*Packer)(nil).Try(json)
			return nil
		})
		if err != nil || plain == nil {
			return false, err
		}
		o = plain
	}
	text, ok := o.JSON()
	if !ok || len(w.bodies)+len(text) > maxBodies {
		return false, nil
	}
	l := layout{
		class: w.class(o.class), bodyAt: len(w.bodies), odd: o.word.Load()&flagOddLabels != 0,
		namespace: int(o.namespaceLen()), key: len(o.slab) - int(o.keyAt),
		labels: field{length: int(o.labelsLen)},
		uid:    o.literal(o.uidAt, uint32(o.uidLen)), version: o.literal(o.versionAt, uint32(o.versionLen)),
	}
	if o.labelsLen > 0 {
		l.labels = o.literal(o.labelsAt, o.labelsLen)
	}
	from := 0
	for _, cut := range l.cuts() {
		w.bodies = append(w.bodies, text[from:cut.at]...)
		from = cut.at + cut.length
	}
	w.bodies = append(w.bodies, text[from:]...)
	l.body = len(w.bodies) - l.bodyAt
	w.uids, l.numbered = appendNumber(w.uids, string(o.UID()))
	w.record = l.append(w.record[:0])
	at := len(w.record)
	w.record = o.appendIdentity(w.record)
	if l.numbered {
		w.record = slices.Delete(w.record, at, at+l.uid.length)
	}
	w.records = binary.AppendUvarint(w.records, uint64(len(w.record)))
	w.records = append(w.records, w.record...)
	w.count++
	return true, nil
}

// literal is the field at an offset of the slab: one that stands in the JSON, or not.
func (o *Object) literal(at, length uint32) field {
	if length == 0 || at >= o.body {
		return field{at: -1, length: int(length)}
	}
	return field{at: int(at), length: int(length)}
}

// class is the number of a class.
func (w *BlockWriter) class(of *class) int {
	if at := slices.Index(w.classes, of); at >= 0 {
		return at
	}
	w.classes = append(w.classes, of)
	return len(w.classes) - 1
}

// Block returns the two texts of the block, which the next call of Add or Reset changes.
func (w *BlockWriter) Block() (head, bodies []byte) {
	head = binary.AppendUvarint(nil, uint64(len(w.classes)))
	for _, c := range w.classes {
		for _, text := range []string{c.apiVersion, c.kind} {
			head = append(binary.AppendUvarint(head, uint64(len(text))), text...)
		}
	}
	head = binary.AppendUvarint(head, uint64(w.count))
	head = append(binary.AppendUvarint(head, uint64(len(w.uids))), w.uids...)
	return append(head, w.records...), w.bodies
}

// field is a string of an object: at is where it stands in the JSON; negative: it does not.
type field struct{ at, length int }

// layout says where the parts of an object are. A record of a block's head is a layout and what
// appendIdentity appends, without the UID if that is numbered.
type layout struct {
	class                int
	bodyAt, body         int // the JSON in the bodies, without the fields that stand in it
	uid, version, labels field
	namespace, key       int
	odd                  bool
	numbered             bool // the UID is among the numbers of the head
}

// cuts are the fields that stand in the JSON, in their order there.
func (l *layout) cuts() []field {
	cuts := make([]field, 0, 3)
	for _, f := range [...]field{l.uid, l.version, l.labels} {
		if f.at < 0 || f.length == 0 {
			continue
		}
		at := len(cuts)
		for at > 0 && cuts[at-1].at > f.at {
			at--
		}
		cuts = slices.Insert(cuts, at, f)
	}
	return cuts
}

func (l *layout) append(to []byte) []byte {
	flags := 0
	if l.odd {
		flags |= 1
	}
	if l.numbered {
		flags |= 2
	}
	for _, number := range [...]int{
		l.class, l.bodyAt, l.body, l.uid.at + 1, l.uid.length, l.version.at +
			1, l.version.length, l.labels.at + 1, l.labels.length,
		l.namespace<<2 | flags, l.key,
	} {
		to = binary.AppendUvarint(to, uint64(number))
	}
	return to
}

// errBlock is for a block that nobody has written like that.
var errBlock = errors.New("the block is damaged")

// readLayout reads the layout that a record begins with, and returns its length. The rest of the record is
// checked by whole.
func readLayout(record string) (l layout, length int, err error) {
	rest := record
	var numbers [11]int
	for k := range numbers {
		number, ok := number(&rest)
		if !ok {
			return l, 0, errBlock
		}
		numbers[k] = number
	}
	l = layout{
		class: numbers[0], bodyAt: numbers[1], body: numbers[2], uid: field{numbers[3] - 1, numbers[4]},
		version: field{numbers[5] - 1, numbers[6]}, labels: field{numbers[7] - 1, numbers[8]},
		namespace: numbers[9] >> 2, odd: numbers[9]&1 != 0, numbered: numbers[9]&2 != 0, key: numbers[10],
	}
	if l.uid.length > maxField || l.version.length > maxField || l.namespace > maxField ||
		l.namespace >= l.key && l.namespace > 0 ||
		l.numbered && l.uid.length != uidLength {
		return l, 0, errBlock
	}
	return l, len(record) - len(rest), nil
}

// identity is the length of what follows a layout in a record.
func (l *layout) identity() int64 {
	length := int64(l.version.length) + int64(l.labels.length) + int64(l.key)
	if !l.numbered {
		length += int64(l.uid.length)
	}
	return length
}

// number takes a number off the front.
func number(text *string) (int, bool) {
	n := uint64(0)
	for i := 0; i < len(*text) && i < 5; i++ {
		b := (*text)[i]
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			*text = (*text)[i+1:]
			return int(n), n <= maxSlab
		}
	}
	return 0, false
}

// part takes as many bytes off the front as a number says that comes before them.
func part(text *string) (string, bool) {
	n, ok := number(text)
	if !ok || n > len(*text) {
		return "", false
	}
	found := (*text)[:n]
	*text = (*text)[n:]
	return found, true
}

// Block has the bodies of some objects, which stay in memory, as does what identifies each of them, as long
// as one of them does.
type Block struct {
	open func() ([]byte, error)
	// held is what it takes in memory. kept is what open needs, and bodies is what it returns comes to.
	held, kept, bodies int
	// shares is what the objects come to, without what the allocator adds to it.
	shares int
	// opened is what open returned last, if the garbage collector has not taken it.
	opened atomic.Pointer[weak.Pointer[opened]]
	// objects are all that were read with it.
	objects []Object
}

type opened struct{ bodies []byte }

// ReadBlock returns the objects of a head, of which they have a copy. They count as compressed. bodies
// returns the bodies of the block, as long as one of the objects lives in this form, and is safe for
// concurrent use; size is what it keeps in memory.
func ReadBlock(head []byte, bodies func() ([]byte, error), size int) ([]*Object, error) {
	b := &Block{open: bodies, kept: size}
	rest := textOf(head)
	count, ok := number(&rest)
	if !ok || count > len(rest) {
		return nil, errBlock
	}
	classes := make([]*class, count)
	for k := range classes {
		apiVersion, ok := part(&rest)
		kind, also := part(&rest)
		if !ok || !also {
			return nil, errBlock
		}
		c := *plainClass(bytesOf(apiVersion), bytesOf(kind))
		c.block = b
		classes[k] = &c
	}
	if count, ok = number(&rest); !ok || count > len(rest) {
		return nil, errBlock
	}
	b.objects = make([]Object, count)
	if err := b.read(rest, classes); err != nil {
		return nil, err
	}
	objects := make([]*Object, count)
	for k := range b.objects {
		objects[k] = &b.objects[k]
	}
	return objects, nil
}

// read makes the objects of the numbers and records of a head.
func (b *Block) read(rest string, classes []*class) error {
	uids, ok := part(&rest)
	if !ok {
		return errBlock
	}
	// All slabs are pieces of one text, which must not move while they are made.
	text := make([]byte, 0, len(rest)+len(uids)/numberLength*uidLength)
	for k := range b.objects {
		record, ok := part(&rest)
		if !ok {
			return errBlock
		}
		l, length, err := readLayout(record)
		if err != nil || l.class >= len(classes) || l.identity() != int64(len(record)-length) {
			return errBlock
		}
		start := len(text)
		text = append(text, record[:length]...)
		if l.numbered {
			if len(uids) < numberLength {
				return errBlock
			}
			text = appendUID(text, uids[:numberLength])
			uids = uids[numberLength:]
		}
		text = append(text, record[length:]...)
		b.objects[k].place(textOf(text[start:]), classes[l.class], &l, length)
		b.bodies += l.body
	}
	if rest != "" || uids != "" {
		return errBlock
	}
	objects := len(b.objects) * int(unsafe.Sizeof(Object{}))
	b.held = int(unsafe.Sizeof(*b)) + len(classes)*int(unsafe.Sizeof(class{})) + Allocated(objects) +
		Allocated(cap(text)) + Allocated(b.kept)
	b.shares = objects + len(text) + b.kept
	return nil
}

// place makes an object of a slab that begins with a layout of some length.
func (o *Object) place(slab string, class *class, l *layout, length int) {
	o.slab, o.class, o.body = slab, class, uint32(length)
	o.uidLen, o.versionLen, o.labelsLen = uint16(l.uid.length), uint16(l.version.length),
		uint32(l.labels.length)
	o.placeIdentity()
	o.word.Store(l.word())
}

func (l *layout) word() uint32 {
	if l.odd {
		return uint32(l.namespace) | flagOddLabels
	}
	return uint32(l.namespace)
}

// bytes returns the bodies.
func (b *Block) bytes() ([]byte, error) {
	if last := b.opened.Load(); last != nil {
		if now := last.Value(); now != nil {
			return now.bodies, nil
		}
	}
	bodies, err := b.open()
	if err != nil {
		return nil, err
	}
	last := weak.Make(&opened{bodies})
	b.opened.Store(&last)
	return bodies, nil
}

// appendBody appends the JSON of an object of a block.
func (b *Block) appendBody(dst []byte, o *Object) ([]byte, layout, error) {
	l, _, err := readLayout(o.slab)
	if err != nil {
		return dst, l, err
	}
	bodies, err := b.bytes()
	if err != nil {
		return dst, l, fmt.Errorf("reading %s: %w", o.Key(), err)
	}
	if l.body > len(bodies) || l.bodyAt > len(bodies)-l.body {
		return dst, l, errBlock
	}
	body, start := bodies[l.bodyAt:l.bodyAt+l.body], len(dst)
	for _, cut := range l.cuts() {
		before := cut.at - (len(dst) - start)
		if before < 0 || before > len(body) {
			return dst, l, errBlock
		}
		dst = append(dst, body[:before]...)
		body = body[before:]
		switch cut {
		case l.uid:
			dst = append(dst, o.UID()...)
		case l.version:
			dst = append(dst, o.Version()...)
		default:
			dst = append(dst, o.plainLabels()...)
		}
	}
	return append(dst, body...), l, nil
}

// Block returns the block that the object is in; nil: it has memory of its own.
func (o *Object) Block() *Block { return o.class.block }

// Held is how many bytes of heap the block occupies, its objects included, as long as any of these is in
// memory.
func (b *Block) Held() int { return b.held }

// Len counts the objects.
func (b *Block) Len() int { return len(b.objects) }

// share is what an object has of what its block holds.
func (b *Block) share(o *Object) int {
	size := float64(int(unsafe.Sizeof(*o)) + len(o.slab))
	if l, _, err := readLayout(o.slab); err == nil && b.bodies > 0 {
		size += float64(b.kept) * float64(l.body) / float64(b.bodies)
	}
	return int(size / float64(b.shares) * float64(b.held))
}

// Unfold calls yield with each object of the block, and what makes the same object with memory of its own.
func (b *Block) Unfold(yield func(folded *Object, unfold func() (*Object, error)) bool) {
	for k := range b.objects {
		folded := &b.objects[k]
		if !yield(folded, folded.unfold) {
			return
		}
	}
}

// unfold returns an object of a block as the Packer would have made it.
func (o *Object) unfold() (*Object, error) {
	buffer := buffers.Get().(*buffer)
	defer buffer.release()
	text, l, err := o.class.block.appendBody(buffer.bytes, o)
	if err != nil {
		return nil, err
	}
	next := &Object{
		class: plainClass(bytesOf(o.class.apiVersion), bytesOf(o.class.kind)), body: uint32(len(text)),
		uidLen: o.uidLen, versionLen: o.versionLen, labelsLen: o.labelsLen,
	}
	var slab strings.Builder
	lost := 0 // bytes of fields that are not in the JSON
	for _, f := range []field{l.uid, l.version, l.labels} {
		if f.at < 0 {
			lost += f.length
		}
	}
	slab.Grow(len(text) + lost + l.key)
	slab.Write(text)
	place := func(f field, value string) uint32 {
		if f.at >= 0 || f.length == 0 {
			return uint32(max(f.at, 0))
		}
		at := slab.Len()
		slab.WriteString(value)
		return uint32(at)
	}
	next.uidAt = place(l.uid, string(o.UID()))
	next.versionAt = place(l.version, o.Version())
	next.labelsAt = place(l.labels, o.plainLabels())
	next.keyAt = uint32(slab.Len())
	slab.WriteString(o.Key())
	next.slab = slab.String()
	buffer.bytes = text
	next.word.Store(o.word.Load() & (maskNamespace | flagOddLabels))
	next.decoded.Store(o.decoded.Load())
	return next, nil
}
