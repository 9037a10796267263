package decode

import (
	"reflect"
	"sync/atomic"
	"unsafe"

	"github.com/crdcache/crdcache/internal/jsontext"
)

// sliceHeader is how a slice is laid out.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// empty is where slices without elements point to.
var empty [1]byte

// sliceCodec decodes a slice.
type sliceCodec struct {
	typ  reflect.Type
	size uintptr
	elem codec
	// rooms are the arrays of two elements and more that slices begin with.
	rooms []reflect.Type
	// last is how many elements there were last time: most lists of a field have about as many.
	last atomic.Uint32
}

// firstElements and firstBytes bound what is allocated on the strength of a guess.
const (
	firstElements = 8
	firstBytes    = 1024
)

func (c *compiler) slice(typ reflect.Type) codec {
	if typ.Elem().Kind() == reflect.Uint8 {
		return bytesCodec
	}
	s := &sliceCodec{typ: typ, size: typ.Elem().Size(), elem: c.inside(typ)}
	for n := 2; n <= firstElements && uintptr(n)*s.size <= firstBytes; n++ {
		s.rooms = append(s.rooms, reflect.ArrayOf(n, typ.Elem()))
	}
	return s.decode
}

// decode is a codec.
func (s *sliceCodec) decode(d *document, i int, p unsafe.Pointer) int {
	if d.at(i) != '[' {
		return d.null(i)
	}
	list := (*sliceHeader)(p)
	i = d.space(i + 1)
	if d.at(i) == ']' {
		list.data = unsafe.Pointer(&empty)
		return i + 1
	}
	last := int(s.last.Load())
	s.begin(list, last)
	for more := true; more; {
		if list.len == list.cap {
			s.grow(list)
		}
		end := s.elem(d, i, unsafe.Add(list.data, uintptr(list.len)*s.size))
		if end < 0 {
			return failed
		}
		list.len++
		i, more = d.more(end, ']')
	}
	if list.len != last {
		s.last.Store(uint32(list.len))
	}
	return i
}

// begin makes room for about n elements.
func (s *sliceCodec) begin(list *sliceHeader, n int) {
	if n = min(n-1, len(s.rooms)); n > 0 {
		list.data, list.cap = reflect.New(s.rooms[n-1]).UnsafePointer(), n+1
		return
	}
	list.data, list.cap = reflect.New(s.typ.Elem()).UnsafePointer(), 1
}

// grow doubles the room of a slice.
func (s *sliceCodec) grow(list *sliceHeader) {
	larger := reflect.MakeSlice(s.typ, 2*list.cap, 2*list.cap)
	reflect.Copy(larger, reflect.NewAt(s.typ, unsafe.Pointer(list)).Elem())
	list.data, list.cap = larger.UnsafePointer(), 2*list.cap
}

func (c *compiler) mapping(typ reflect.Type) codec {
	switch {
	case typ.Key().Kind() != reflect.String || reflect.PointerTo(typ.Key()).Implements(textUnmarshaler):
		return general(typ)
	case typ.Key() == reflect.TypeFor[string]() && typ.Elem() == reflect.TypeFor[string]():
		return stringMap
	}
	elem := c.inside(typ)
	return func(d *document, i int, p unsafe.Pointer) int {
		if d.at(i) != '{' {
			return d.null(i)
		}
		made := reflect.MakeMap(typ)
		key := reflect.New(typ.Key()).Elem()
		end := d.members(i, func(name string, value int) int {
			one := reflect.New(typ.Elem())
			end := elem(d, value, one.UnsafePointer())
			if end >= 0 {
				key.SetString(name)
				made.SetMapIndex(key, one.Elem())
			}
			return end
		})
		if end >= 0 {
			reflect.NewAt(typ, p).Elem().Set(made)
		}
		return end
	}
}

// stringMap decodes into a map[string]string.
func stringMap(d *document, i int, p unsafe.Pointer) int {
	if d.at(i) != '{' {
		return d.null(i)
	}
	made := map[string]string{}
	i = d.space(i + 1)
	more := d.at(i) != '}'
	if !more {
		i++
	}
	for more {
		name, value := d.member(i)
		var text string
		end := stringCodec(d, value, unsafe.Pointer(&text))
		if end < 0 {
			return failed
		}
		made[name] = text
		i, more = d.more(end, '}')
	}
	if i >= 0 {
		*(*map[string]string)(p) = made
	}
	return i
}

// members calls read for each member of the object at i with its key and where its value is; read returns the
// end of that. Of a key that comes twice the last counts, as in a map.
func (d *document) members(i int, read func(name string, value int) int) int {
	i = d.space(i + 1)
	if d.at(i) == '}' {
		return i + 1
	}
	for more := true; more; {
		name, value := d.member(i)
		if value < 0 {
			return failed
		}
		end := read(name, value)
		if end < 0 {
			return failed
		}
		i, more = d.more(end, '}')
	}
	return i
}

// member reads the key at i, and returns where its value is.
func (d *document) member(i int) (name string, value int) {
	name, end := d.string(i)
	if end < 0 {
		return "", failed
	}
	value = jsontext.Colon(d.data, end)
	if value < 0 {
		return "", failed
	}
	return name, value
}
