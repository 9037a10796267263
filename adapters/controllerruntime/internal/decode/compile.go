package decode

import (
	"bytes"
	"encoding"
	stdjson "encoding/json"
	"reflect"
	"unsafe"

	"sigs.k8s.io/json"
)

// compiler has the structs being compiled by type, because types can be recursive.
type compiler struct {
	structs map[reflect.Type]*structCodec
	// enclosingTypes has the slices, maps and pointers around the type being compiled. Types that contain
	// themselves without a struct in between are rare, and use the general decoder.
	enclosingTypes map[reflect.Type]bool
}

func newCompiler() *compiler {
	return &compiler{structs: map[reflect.Type]*structCodec{}, enclosingTypes: map[reflect.Type]bool{}}
}

var (
	unmarshaler     = reflect.TypeFor[stdjson.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (c *compiler) codec(typ reflect.Type) codec {
	if cached, ok := knownTypes[typ]; ok {
		return cached
	}
	if c.enclosingTypes[typ] {
		return fallbackCodec(typ)
	}
	pointer := reflect.PointerTo(typ)
	switch {
	case isText(typ):
		return stringCodec
	case typ.Kind() == reflect.Pointer:
		return c.pointer(typ)
	case pointer.Implements(unmarshaler), pointer.Implements(textUnmarshaler):
		return fallbackCodec(typ)
	}
	if scalar, ok := scalars[typ.Kind()]; ok {
		return scalar
	}
	switch typ.Kind() {
	case reflect.Slice:
		return c.slice(typ)
	case reflect.Map:
		return c.mapping(typ)
	case reflect.Struct:
		return c.structure(typ)
	}
	return fallbackCodec(typ)
}

// isText reports whether a type is a string without an unmarshaler.
func isText(typ reflect.Type) bool {
	pointer := reflect.PointerTo(typ)
	return typ.Kind() == reflect.String && !pointer.Implements(unmarshaler) &&
		!pointer.Implements(textUnmarshaler)
}

func (c *compiler) element(typ reflect.Type) codec {
	c.enclosingTypes[typ] = true
	defer delete(c.enclosingTypes, typ)
	return c.codec(typ.Elem())
}

// fallbackCodec returns a codec that calls sigs.k8s.io/json with a copy of the JSON.
func fallbackCodec(typ reflect.Type) codec {
	return func(d *document, i int, p unsafe.Pointer) int {
		end := d.skip(i)
		if end < 0 || json.UnmarshalCaseSensitivePreserveInts(bytes.Clone(d.data[i:end]),
			reflect.NewAt(typ, p).Interface()) != nil {
			return failedOffset
		}
		return end
	}
}

func (c *compiler) pointer(typ reflect.Type) codec {
	elem := typ.Elem()
	inner := c.element(typ)
	return func(d *document, i int, p unsafe.Pointer) int {
		if d.byteAt(i) == 'n' {
			return d.null(i)
		}
		made := reflect.New(elem).UnsafePointer()
		end := inner(d, i, made)
		if end < 0 {
			return failedOffset
		}
		*(*unsafe.Pointer)(p) = made
		return end
	}
}

// structure returns the codec of a struct, which may still be compiling.
func (c *compiler) structure(typ reflect.Type) codec {
	if s, ok := c.structs[typ]; ok {
		return s.decode
	}
	s := &structCodec{byName: map[string]int{}}
	c.structs[typ] = s
	fields, ok := fieldsOf(typ)
	if !ok {
		s.fallback = fallbackCodec(typ)
		return s.decode
	}
	// a struct is compiled only once, so its codec must not depend on the enclosing types
	around := c.enclosingTypes
	c.enclosingTypes = map[reflect.Type]bool{}
	defer func() { c.enclosingTypes = around }()
	for k, f := range fields {
		s.byName[f.name] = k
		s.fields = append(s.fields, field{keyEnd: f.name + `":`, offset: f.offset, decode: c.codec(f.typ),
			isText: isText(f.typ)})
	}
	return s.decode
}
