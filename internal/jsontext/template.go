package jsontext

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"slices"
	"sync/atomic"
)

const (
	// maxTemplateText and maxTemplateParts limit the size of one template. templateBits is the logarithm of
	// the number of templates. Hostile data fills a few megabytes, typical data far less.
	maxTemplateText  = 1024
	maxTemplateParts = 32
	templateBits     = 9
	// templatePrefix is the length of the prefix that, together with the key before it, selects a slot.
	templatePrefix = 16
	// minClonedMembers is the number of scalar members from which on cloning a map is cheaper than filling a
	// new one.
	minClonedMembers = 4
	// smallMapSize is the capacity of the smallest map.
	smallMapSize = 8
	// maxSizeGuess limits the size of preallocated maps.
	maxSizeGuess = 64
)

// member is one key of an object with its value.
type member struct {
	key   string
	value any
}

// template is a decoded object or array that is copied when its text recurs. Objects of one type repeat large
// parts literally: the field sets of managed fields, resources, probes, labels of selectors. Comparing text
// is far cheaper than parsing it, and a map is cloned without hashing its keys.
//
// Copies are deep, because callers may change them. Only strings and numbers are shared.
type template struct {
	text    string
	nesting int // nesting depth including itself
	// an object with nil instead of nested objects and arrays; nil if filling a new map is cheaper than
	// cloning
	mapToClone map[string]any
	// members of an object that is not cloned, except nested objects and arrays
	members []member
	// an array with nil instead of nested objects and arrays; nil for objects
	array  []any
	nested []nestedContainer // nested objects and arrays
}

// nestedContainer is a nested object or array. key is its key in an object, index its index in an array.
type nestedContainer struct {
	key      string
	index    int
	template *template
}

// newTemplate returns a template of an object or array, or nil if it has more than *partsLeft of them.
func newTemplate(value any, partsLeft *int) *template {
	if *partsLeft--; *partsLeft < 0 {
		return nil
	}
	t := &template{nesting: 1}
	switch value := value.(type) {
	case map[string]any:
		t.setObject(value, partsLeft)
	case []any:
		t.array = append(make([]any, 0, len(value)), value...)
		for i, v := range value {
			if isContainer(v) {
				t.array[i] = nil
				t.nested = append(t.nested, nestedContainer{index: i, template: newTemplate(v, partsLeft)})
			}
		}
	}
	for _, container := range t.nested {
		if container.template == nil {
			return nil
		}
		t.nesting = max(t.nesting, container.template.nesting+1)
	}
	return t
}

func (t *template) setObject(object map[string]any, partsLeft *int) {
	for key, v := range object {
		if isContainer(v) {
			t.nested = append(t.nested, nestedContainer{key: key, template: newTemplate(v, partsLeft)})
		} else {
			t.members = append(t.members, member{key, v})
		}
	}
	if len(t.members) < minClonedMembers {
		return
	}
	t.mapToClone, t.members = maps.Clone(object), nil
	for i := range t.nested {
		t.mapToClone[t.nested[i].key] = nil
	}
}

func isContainer(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// copy returns a deep copy for the caller.
func (t *template) copy() any {
	if t.array != nil {
		array := slices.Clone(t.array)
		for i := range t.nested {
			array[t.nested[i].index] = t.nested[i].template.copy()
		}
		return array
	}
	var object map[string]any
	if t.mapToClone != nil {
		object = maps.Clone(t.mapToClone)
	} else {
		object = make(map[string]any, len(t.members)+len(t.nested))
		for i := range t.members {
			object[t.members[i].key] = t.members[i].value
		}
	}
	for i := range t.nested {
		object[t.nested[i].key] = t.nested[i].template.copy()
	}
	return object
}

// templateTable caches one template for each slot. As in internTable, slots are replaced atomically, and only
// by a text that misses twice in succession.
type templateTable struct {
	slots [1 << templateBits]templateSlotState
	seed  maphash.Seed
}

type templateSlotState struct {
	template   atomic.Pointer[template]
	missedHash atomic.Uint64 // the hash of the last text that missed
	// size is the number of members of the last object, or 0 for small objects. Objects with the same
	// beginning tend to be of one type, so their maps are preallocated with this size.
	size atomic.Uint32
}

// templateSlot returns the slot for the text that data begins with. The key before the text distinguishes
// texts with the same beginning.
func templateSlot(data []byte, key uint32) (slot uint32, ok bool) {
	const odd = 0x9e3779b97f4a7c15
	if len(data) < templatePrefix {
		return 0, false
	}
	h := binary.LittleEndian.Uint64(data)*odd ^ uint64(key)
	h = (h ^ h>>32 ^ binary.LittleEndian.Uint64(data[8:])) * odd
	return uint32(h >> (64 - templateBits)), true
}

// find returns the template if data begins with its text.
func (p *templateSlotState) find(data []byte) *template {
	e := p.template.Load()
	if e == nil || len(data) < len(e.text) || string(data[:len(e.text)]) != e.text {
		return nil
	}
	return e
}

// learn records a value without a template if all its short strings are shared.
func (t *templateTable) learn(slot uint32, text []byte, value any) {
	if len(text) < templatePrefix || len(text) > maxTemplateText {
		return
	}
	s, hash := &t.slots[slot], maphash.Bytes(t.seed, text)
	if s.missedHash.Load() != hash {
		s.missedHash.Store(hash)
		return
	}
	parts := maxTemplateParts
	if e := newTemplate(value, &parts); e != nil {
		e.text = string(text)
		s.template.Store(e)
	}
}

// learnSize records the number of members of an object without a template.
func (p *templateSlotState) learnSize(members int) {
	size := uint32(min(members, maxSizeGuess))
	if size <= smallMapSize {
		size = 0
	}
	if p.size.Load() != size {
		p.size.Store(size)
	}
}
