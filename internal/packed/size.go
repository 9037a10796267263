package packed

import (
	"slices"
	"sync"
)

// sizeClasses are the sizes that the allocator hands out for small objects, found by asking it: they depend on
// the version of Go.
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
func Allocated(n int) int { return allocated(n) }

// allocated is how many bytes n bytes without pointers occupy.
func allocated(n int) int {
	classes := sizeClasses()
	if i, _ := slices.BinarySearch(classes, n); i < len(classes) {
		if n == 0 {
			return 0
		}
		return classes[i]
	}
	return (n + pageSize - 1) / pageSize * pageSize
}
