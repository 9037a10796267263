package decode

import (
	"bytes"
	"encoding"
	stdjson "encoding/json"
	"reflect"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
)

// compiler has the structs that are being compiled, by their types: types may contain themselves.
type compiler struct {
	structs map[reflect.Type]*structCodec
	// within has the slices, maps and pointers around what is being compiled. Those that contain themselves
	// without a struct in between are rare, and left to the general decoder.
	within map[reflect.Type]bool
}

func newCompiler() *compiler {
	return &compiler{structs: map[reflect.Type]*structCodec{}, within: map[reflect.Type]bool{}}
}

var (
	unmarshaler     = reflect.TypeFor[stdjson.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// codec returns the codec of a type.
func (c *compiler) codec(typ reflect.Type) codec {
	if known, ok := knownTypes[typ]; ok {
		return known
	}
	if c.within[typ] {
		return general(typ)
	}
	pointer := reflect.PointerTo(typ)
	switch {
	case isText(typ):
		return stringCodec
	case typ.Kind() == reflect.Pointer:
		return c.pointer(typ)
	case typ.Kind() == reflect.Interface:
		return general(typ)
	case pointer.Implements(unmarshaler):
		return unmarshaling(typ)
	case pointer.Implements(textUnmarshaler):
		return general(typ)
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
	return general(typ)
}

// isText reports whether values of a type are strings, and decoded as such.
func isText(typ reflect.Type) bool {
	pointer := reflect.PointerTo(typ)
	return typ.Kind() == reflect.String && !pointer.Implements(unmarshaler) &&
		!pointer.Implements(textUnmarshaler)
}

// inside returns the codec of the elements of a type.
func (c *compiler) inside(typ reflect.Type) codec {
	c.within[typ] = true
	defer delete(c.within, typ)
	return c.codec(typ.Elem())
}

// general leaves a value to sigs.k8s.io/json, with a copy of the JSON as unmarshaling does.
func general(typ reflect.Type) codec {
	return func(d *document, i int, p unsafe.Pointer) int {
		end := d.skip(i)
		if end < 0 || json.UnmarshalCaseSensitivePreserveInts(bytes.Clone(d.data[i:end]),
			reflect.NewAt(typ, p).Interface()) != nil {
			return failed
		}
		return end
	}
}

// unmarshaling leaves a value to its own method, which gets a copy of the JSON: it may keep it against the
// rules.
func unmarshaling(typ reflect.Type) codec {
	return func(d *document, i int, p unsafe.Pointer) int {
		end := d.skip(i)
		if end < 0 {
			return failed
		}
		value := reflect.NewAt(typ, p).Interface().(stdjson.Unmarshaler)
		if value.UnmarshalJSON(bytes.Clone(d.data[i:end])) != nil {
			return failed
		}
		return end
	}
}

func (c *compiler) pointer(typ reflect.Type) codec {
	elem := typ.Elem()
	inner := c.inside(typ)
	if elem == reflect.TypeFor[metav1.Time]() {
		return timePointer
	}
	room := roomFor(elem)
	return func(d *document, i int, p unsafe.Pointer) int {
		if d.at(i) == 'n' {
			return d.null(i)
		}
		made := room()
		end := inner(d, i, made)
		if end < 0 {
			return failed
		}
		*(*unsafe.Pointer)(p) = made
		return end
	}
}

// roomFor returns what allocates a value of a type: without reflection for simple kinds.
func roomFor(typ reflect.Type) func() unsafe.Pointer {
	switch typ.Kind() {
	case reflect.String:
		return func() unsafe.Pointer { return unsafe.Pointer(new(string)) }
	case reflect.Bool:
		return func() unsafe.Pointer { return unsafe.Pointer(new(bool)) }
	case reflect.Int32:
		return func() unsafe.Pointer { return unsafe.Pointer(new(int32)) }
	case reflect.Int64:
		return func() unsafe.Pointer { return unsafe.Pointer(new(int64)) }
	}
	return func() unsafe.Pointer { return reflect.New(typ).UnsafePointer() }
}

// structure returns the codec of a struct, which may be one that is being compiled.
func (c *compiler) structure(typ reflect.Type) codec {
	if s, ok := c.structs[typ]; ok {
		return s.decode
	}
	s := &structCodec{}
	c.structs[typ] = s
	fields, ok := fieldsOf(typ)
	if !ok {
		s.general = general(typ)
		return s.decode
	}
	around := c.within // a struct is compiled once, wherever it is first
	c.within = map[reflect.Type]bool{}
	defer func() { c.within = around }()
	for _, f := range fields {
		s.add(f, c.codec(f.typ))
	}
	return s.decode
}
