package packed

import (
	"slices"
	"sync"
	"unsafe"
)

// sizeClasses returns the allocator's size classes. It allocates to find them: Go's versions differ.
var sizeClasses = sync.OnceValue(func() []int {
	var classes []int
	for size := 1; size <= 32<<10; {
		rounded := cap(append([]byte(nil), make([]byte, size)...))
		classes = append(classes, rounded)
		size = rounded + 1
	}
	return classes
})

// pageSize is the granularity of large allocations.
const pageSize = 8 << 10

// AllocationSize returns the heap size of an allocation of n bytes without pointers.
func AllocationSize(n int) int {
	classes := sizeClasses()
	if i, _ := slices.BinarySearch(classes, n); i < len(classes) {
		if n == 0 {
			return 0
		}
		return classes[i]
	}
	return (n + pageSize - 1) / pageSize * pageSize
}

// PointerAllocationSize returns the heap size of an allocation of n bytes with pointers. Above 512 bytes the
// allocator adds a header.
func PointerAllocationSize(n int) int {
	if n > 512 {
		n += 8
	}
	return AllocationSize(n)
}

// DecodedSize adds up the heap size of decoded values, in bytes. It counts shared strings once.
type DecodedSize struct {
	Bytes int64
	seen  map[unsafe.Pointer]bool
}

// Sizes of maps: a header, and groups of eight slots with a control word, at most seven eighths full. Large
// maps also have a table, and a directory, which is neglected.
const (
	wordSize   = int(unsafe.Sizeof(uintptr(0)))
	slotSize   = 4 * wordSize // a string and an interface
	mapHeader  = 16 + 4*wordSize
	mapTable   = 24 + 2*wordSize
	groupSlots = 8
)

// Add adds a value.
func (s *DecodedSize) Add(value any) {
	switch v := value.(type) {
	case string:
		// The data word of an interface points to the string's header, which decoded copies share.
		if s.isNew((*[2]unsafe.Pointer)(unsafe.Pointer(&value))[1]) {
			s.add(2 * wordSize)
		}
		s.addText(v)
	case map[string]any:
		s.add(mapHeader)
		slots := groupSlots
		for len(v) > groupSlots && len(v) > slots/groupSlots*7 {
			slots *= 2
		}
		if slots > groupSlots {
			s.add(mapTable)
		}
		if len(v) > 0 {
			s.add(slots / groupSlots * (8 + groupSlots*slotSize))
		}
		for key, element := range v {
			s.addText(key)
			s.Add(element)
		}
	case []any:
		s.add(3 * wordSize)
		s.add(cap(v) * 2 * wordSize)
		for _, element := range v {
			s.Add(element)
		}
	case int64:
		if v < 0 || v > 255 { // others are preallocated by the runtime
			s.add(8)
		}
	case float64:
		s.add(8)
	}
}

func (s *DecodedSize) add(size int) { s.Bytes += int64(PointerAllocationSize(size)) }

func (s *DecodedSize) addText(text string) {
	if text != "" && s.isNew(unsafe.Pointer(unsafe.StringData(text))) {
		s.Bytes += int64(AllocationSize(len(text)))
	}
}

func (s *DecodedSize) isNew(data unsafe.Pointer) bool {
	if s.seen[data] {
		return false
	}
	if s.seen == nil {
		s.seen = map[unsafe.Pointer]bool{}
	}
	s.seen[data] = true
	return true
}
