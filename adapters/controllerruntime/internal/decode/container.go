package decode

import (
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// sliceHeader is the memory layout of a slice.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// emptyArray is the data pointer of empty slices.
var emptyArray [1]byte

// sliceCodec decodes a slice.
type sliceCodec struct {
	typ  reflect.Type
	size uintptr
	elem codec
	// arrays are array types with 2, 3, … elements, for the initial allocation.
	arrays []reflect.Type
	// lastLength is the length of the previous slice: most lists of a field have similar lengths.
	lastLength atomic.Uint32
}

// maxFirstElements and maxFirstBytes limit the initial allocation. Its size is a guess.
const (
	maxFirstElements = 8
	maxFirstBytes    = 1024
)

func (c *compiler) slice(typ reflect.Type) codec {
	if typ.Elem().Kind() == reflect.Uint8 {
		return bytesCodec
	}
	s := &sliceCodec{typ: typ, size: typ.Elem().Size(), elem: c.element(typ)}
	for n := 2; n <= maxFirstElements && uintptr(n)*s.size <= maxFirstBytes; n++ {
		s.arrays = append(s.arrays, reflect.ArrayOf(n, typ.Elem()))
	}
	return s.decode
}

func (s *sliceCodec) decode(d *document, i int, p unsafe.Pointer) int {
	if d.byteAt(i) != '[' {
		return d.null(i)
	}
	list := (*sliceHeader)(p)
	i = d.skipSpace(i + 1)
	if d.byteAt(i) == ']' {
		list.data = unsafe.Pointer(&emptyArray)
		return i + 1
	}
	expectedLength := int(s.lastLength.Load())
	s.allocate(list, expectedLength)
	for more := true; more; {
		if list.len == list.cap {
			larger := reflect.MakeSlice(s.typ, 2*list.cap, 2*list.cap)
			reflect.Copy(larger, reflect.NewAt(s.typ, unsafe.Pointer(list)).Elem())
			list.data, list.cap = larger.UnsafePointer(), 2*list.cap
		}
		end := s.elem(d, i, unsafe.Add(list.data, uintptr(list.len)*s.size))
		if end < 0 {
			return failedOffset
		}
		list.len++
		i, more = d.hasNext(end, ']')
	}
	if list.len != expectedLength {
		s.lastLength.Store(uint32(list.len))
	}
	return i
}

// allocate allocates room for about n elements.
func (s *sliceCodec) allocate(list *sliceHeader, n int) {
	if n = min(n-1, len(s.arrays)); n > 0 {
		list.data, list.cap = reflect.New(s.arrays[n-1]).UnsafePointer(), n+1
		return
	}
	list.data, list.cap = reflect.New(s.typ.Elem()).UnsafePointer(), 1
}

func (c *compiler) mapping(typ reflect.Type) codec {
	switch {
	case typ.Key().Kind() != reflect.String || reflect.PointerTo(typ.Key()).Implements(textUnmarshaler):
		return fallbackCodec(typ)
	case typ.Key() == reflect.TypeFor[string]() && typ.Elem() == reflect.TypeFor[string]():
		return stringMap
	}
	elem := c.element(typ)
	return func(d *document, i int, p unsafe.Pointer) int {
		if d.byteAt(i) != '{' {
			return d.null(i)
		}
		decoded := reflect.MakeMap(typ)
		key := reflect.New(typ.Key()).Elem()
		end := d.members(i, func(name string, value int) int {
			element := reflect.New(typ.Elem())
			end := elem(d, value, element.UnsafePointer())
			if end >= 0 {
				key.SetString(name)
				decoded.SetMapIndex(key, element.Elem())
			}
			return end
		})
		if end >= 0 {
			reflect.NewAt(typ, p).Elem().Set(decoded)
		}
		return end
	}
}

func stringMap(d *document, i int, p unsafe.Pointer) int {
	if d.byteAt(i) != '{' {
		return d.null(i)
	}
	made := map[string]string{}
	end := d.members(i, func(name string, value int) int {
		var text string
		end := stringCodec(d, value, unsafe.Pointer(&text))
		made[name] = text
		return end
	})
	if end >= 0 {
		*(*map[string]string)(p) = made
	}
	return end
}

// members calls read for each member of the object at i, with the key and the offset of the value. read
// returns the end of the value. If a key occurs twice, the last value wins, as in a map.
func (d *document) members(i int, read func(name string, value int) int) int {
	i = d.skipSpace(i + 1)
	if d.byteAt(i) == '}' {
		return i + 1
	}
	for more := true; more; {
		name, end := d.string(i)
		if end < 0 {
			return failedOffset
		}
		value := jsontext.SkipColon(d.data, end)
		if value < 0 {
			return failedOffset
		}
		if end = read(name, value); end < 0 {
			return failedOffset
		}
		i, more = d.hasNext(end, '}')
	}
	return i
}
