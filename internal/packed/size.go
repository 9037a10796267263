package packed

import (
	"slices"
	"sync"
)

// sizeClasses are the sizes that the allocator hands out for small objects, found by asking it: they depend
// on the version of Go.
var sizeClasses = sync.OnceValue(func() []int {
	var classes []int
	for size := 1; size <= 32<<10; {
		rounded := cap(append([]byte(nil), make([]byte, size)...))
		classes = append(classes, rounded)
		size = rounded + 1
	}
	return classes
})

// pageSize is what the sizes of large objects are multiples of.
const pageSize = 8 << 10

// Allocated is how many bytes of heap n bytes without pointers occupy.
func Allocated(n int) int {
	classes := sizeClasses()
	if i, _ := slices.BinarySearch(classes, n); i < len(classes) {
		if n == 0 {
			return 0
		}
		return classes[i]
	}
	return (n + pageSize - 1) / pageSize * pageSize
}

// weigh estimates the size of a decoded value.
func weigh(value any) int {
	const (
		word  = 16       // an interface or the header of a string
		group = 48 + 288 // a map of up to eight keys, which are part of it
	)
	switch value := value.(type) {
	case string:
		return word + Allocated(len(value))
	case map[string]any:
		size := group * max(1, (len(value)+7)/8)
		for k, v := range value {
			size += Allocated(len(k)) + weigh(v)
		}
		return size
	case []any:
		size := 24 + Allocated(word*len(value))
		for _, v := range value {
			size += weigh(v)
		}
		return size
	}
	return word
}
