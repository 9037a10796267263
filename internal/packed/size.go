package packed

import (
	"slices"
	"sync"
)

// sizeClasses returns the allocator's size classes. It finds them by allocating, because they depend on the
// version of Go.
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

// sizeOfValue estimates the heap size of a decoded value in bytes.
func sizeOfValue(value any) int {
	const (
		word  = 16       // an interface or a string header
		group = 48 + 288 // a map with up to eight keys
	)
	switch value := value.(type) {
	case string:
		return word + AllocationSize(len(value))
	case map[string]any:
		size := group * max(1, (len(value)+7)/8)
		for k, v := range value {
			size += AllocationSize(len(k)) + sizeOfValue(v)
		}
		return size
	case []any:
		size := 24 + AllocationSize(word*len(value))
		for _, v := range value {
			size += sizeOfValue(v)
		}
		return size
	}
	return word
}
