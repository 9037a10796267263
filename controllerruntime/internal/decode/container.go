package decode

import (
	"reflect"
	"unsafe"
)

// elementBytes is about how much is allocated for the first elements of a slice.
const elementBytes = 256

// sliceHeader is how a slice is laid out.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// empty is where slices without elements point to.
var empty [1]byte

func (c *compiler) slice(typ reflect.Type) codec {
	if typ.Elem().Kind() == reflect.Uint8 {
		return bytesCodec
	}
	elem := c.inside(typ)
	size := typ.Elem().Size()
	few := 1
	if size > 0 {
		few = max(1, min(4, elementBytes/int(size)))
	}
	first := reflect.ArrayOf(few, typ.Elem())
	return func(d *document, i int, p unsafe.Pointer) int {
		if d.at(i) != '[' {
			return d.null(i)
		}
		list := (*sliceHeader)(p)
		i = d.space(i + 1)
		if d.at(i) == ']' {
			list.data = unsafe.Pointer(&empty)
			return i + 1
		}
		list.data, list.cap = reflect.New(first).UnsafePointer(), few
		for more := true; more; {
			if list.len == list.cap {
				grow(typ, list)
			}
			end := elem(d, i, unsafe.Add(list.data, uintptr(list.len)*size))
			if end < 0 {
				return failed
			}
			list.len++
			i, more = d.more(end, ']')
		}
		return i
	}
}

// grow doubles the room of a slice.
func grow(typ reflect.Type, list *sliceHeader) {
	larger := reflect.MakeSlice(typ, 2*list.cap, 2*list.cap)
	reflect.Copy(larger, reflect.NewAt(typ, unsafe.Pointer(list)).Elem())
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

// members calls read for each member of the object at i with its key and where its value is; read returns the end of that.
// Of a key that comes twice the last counts, as in a map.
func (d *document) members(i int, read func(name string, value int) int) int {
	i = d.space(i + 1)
	if d.at(i) == '}' {
		return i + 1
	}
	for more := true; more; {
		text, end := d.quoted(i)
		if end < 0 {
			return failed
		}
		name := d.own(text)
		value := d.space(end)
		if d.at(value) != ':' {
			return failed
		}
		if end = read(name, d.space(value+1)); end < 0 {
			return failed
		}
		i, more = d.more(end, '}')
	}
	return i
}
