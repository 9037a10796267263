package jsontext

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"sync/atomic"
)

const (
	// maxTemplateText and maxTemplateParts bound what is remembered of one object or array, and templateBits,
	// the logarithm of their number, how many are: hostile data fills a few megabytes, a usual type far less.
	maxTemplateText  = 1024
	maxTemplateParts = 32
	templateBits     = 9
	// templatePrefix is how much of a text chooses its slot, beside the key before it.
	templatePrefix = 16
	// minCloned is from how many strings, numbers and the like in an object on copying its map as a block of
	// memory is cheaper than filling another.
	minCloned = 4
	// smallMap is how many members a map has room for however it is made.
	smallMap = 8
	// maxSizeGuess bounds the maps that are made in advance.
	maxSizeGuess = 64
)

// member is one key of an object with its value.
type member struct {
	key   string
	value any
}

// template is an object or array to copy when its text occurs again. Objects of one type repeat large parts
// of each other literally: the field sets of managed fields, resources, probes, labels of selectors.
// Comparing text is far cheaper than parsing it, and a map is copied as a block of memory, without hashing
// its keys.
//
// A copy is deep, since whoever gets an object may change it. Only strings and numbers are shared.
type template struct {
	text    string
	nesting int            // how deep it nests, itself included
	cloned  map[string]any // an object, nil in place of objects and arrays within; or nil if not worth it
	members []member       // an object that is not cloned, without objects and arrays within
	array   []any          // an array, nil in place of objects and arrays within; nil for objects
	inner   []inner        // the objects and arrays within
}

// inner is an object or array within an object, under key, or within an array, at index.
type inner struct {
	key   string
	index int
	of    *template
}

// newTemplate returns a template of an object or array, or nil if it has more than *parts objects and arrays.
func newTemplate(value any, parts *int) *template {
	if *parts--; *parts < 0 {
		return nil
	}
	t := &template{nesting: 1}
	switch value := value.(type) {
	case map[string]any:
		t.ofObject(value, parts)
	case []any:
		t.array = append(make([]any, 0, len(value)), value...)
		for i, v := range value {
			if isContainer(v) {
				t.array[i] = nil
				t.inner = append(t.inner, inner{index: i, of: newTemplate(v, parts)})
			}
		}
	}
	for _, in := range t.inner {
		if in.of == nil {
			return nil
		}
		t.nesting = max(t.nesting, in.of.nesting+1)
	}
	return t
}

func (t *template) ofObject(object map[string]any, parts *int) {
	for key, v := range object {
		if isContainer(v) {
			t.inner = append(t.inner, inner{key: key, of: newTemplate(v, parts)})
		} else {
			t.members = append(t.members, member{key, v})
		}
	}
	if len(t.members) < minCloned {
		return
	}
	t.cloned, t.members = maps.Clone(object), nil
	for i := range t.inner {
		t.cloned[t.inner[i].key] = nil
	}
}

func isContainer(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// copy returns an object or array of its own for the caller.
func (t *template) copy() any {
	if t.array != nil {
		return t.copyArray()
	}
	var object map[string]any
	if t.cloned != nil {
		object = maps.Clone(t.cloned)
	} else {
		object = make(map[string]any, len(t.members)+len(t.inner))
		for i := range t.members {
			object[t.members[i].key] = t.members[i].value
		}
	}
	for i := range t.inner {
		object[t.inner[i].key] = t.inner[i].of.copy()
	}
	return object
}

func (t *template) copyArray() any {
	array := make([]any, len(t.array))
	copy(array, t.array)
	for i := range t.inner {
		array[t.inner[i].index] = t.inner[i].of.copy()
	}
	return array
}

// templateTable remembers one template for each slot. As in internTable, slots are replaced as a whole, and
// only by a text that misses twice in turn.
type templateTable struct {
	slots [1 << templateBits]templatePlace
	seed  maphash.Seed
}

// templatePlace is one slot.
type templatePlace struct {
	template atomic.Pointer[template]
	seen     atomic.Uint64 // the hash of the last text that missed
	// size is how many members the last object that was read had, if more than smallMap. Objects
	// that begin alike tend to be of one type: their maps are made large enough, instead of growing.
	size atomic.Uint32
}

// templateSlot returns where a template for the text that data begins with would be. The key before the text
// tells apart what begins alike.
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
func (p *templatePlace) find(data []byte) *template {
	e := p.template.Load()
	if e == nil || len(data) < len(e.text) || string(data[:len(e.text)]) != e.text {
		return nil
	}
	return e
}

// learn is told of a value that had no template, all of whose short strings are shared.
func (t *templateTable) learn(slot uint32, text []byte, value any) {
	if len(text) < templatePrefix || len(text) > maxTemplateText {
		return
	}
	place, hash := &t.slots[slot], maphash.Bytes(t.seed, text)
	if place.seen.Load() != hash {
		place.seen.Store(hash)
		return
	}
	parts := maxTemplateParts
	if e := newTemplate(value, &parts); e != nil {
		e.text = string(text)
		place.template.Store(e)
	}
}

// learnSize is told of the members of an object that had no template.
func (p *templatePlace) learnSize(members int) {
	size := uint32(min(members, maxSizeGuess))
	if size <= smallMap {
		size = 0
	}
	if p.size.Load() != size {
		p.size.Store(size)
	}
}
