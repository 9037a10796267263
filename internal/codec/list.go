package codec

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/newer"
	"github.com/crdcache/crdcache/internal/packed"
)

// ErrUnsupportedList is returned by ReadList for responses that are not typical lists. The caller lets the
// dynamic client decode them. Errors of the reader are returned unchanged.
var ErrUnsupportedList = errors.New("unsupported form of a list")

const (
	// listBuffer is the initial size of the read buffer.
	listBuffer = 64 << 10
	// maxItem limits the size of an item, in bytes; API servers store no objects of this size.
	maxItem = 128 << 20
)

// ReadList reads the JSON of a list and packs its items one by one, converted by packer.ListForm. At most one
// item at a time is in memory as JSON.
func ReadList(r io.Reader, packer *packed.Packer) (*packed.List, error) {
	l := &listReader{source: r, packer: packer, data: make([]byte, 0, listBuffer),
		list: &packed.List{Items: []*packed.Object{}}}
	if err := l.read(); err != nil {
		return nil, err
	}
	return l.list, nil
}

type listReader struct {
	source    io.Reader
	packer    *packed.Packer
	data      []byte // the unread part of the input
	pos       int    // offset in data
	ended     bool   // the source has reached its end
	list      *packed.List
	members   map[string]any // members of the list, without items
	seenItems bool           // items has been read
	untyped   []untypedItem
}

// untypedItem is an item without a kind that came before the kind of the list.
type untypedItem struct {
	index int
	json  []byte
}

func (l *listReader) read() error {
	l.members = map[string]any{}
	if c, err := l.next(); err != nil || c != '{' {
		return orUnsupported(err)
	}
	l.pos++
	if err := l.object(); err != nil {
		return err
	}
	if _, err := l.next(); !errors.Is(err, io.EOF) {
		return orUnsupported(err)
	}
	return l.finish()
}

func orUnsupported(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return ErrUnsupportedList
	}
	return err
}

// object reads the members of the list up to its closing brace.
func (l *listReader) object() error {
	for {
		key, err := l.value()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if c, err := l.next(); !ok || err != nil || c != ':' {
			return orUnsupported(err)
		}
		l.pos++
		if err := l.member(name); err != nil {
			return err
		}
		c, err := l.next()
		if err != nil {
			return orUnsupported(err)
		}
		l.pos++
		switch c {
		case '}':
			return nil
		case ',':
			if c, err := l.next(); err != nil || c != '"' {
				return orUnsupported(err)
			}
		default:
			return ErrUnsupportedList
		}
	}
}

func (l *listReader) member(name string) error {
	if _, err := l.next(); err != nil {
		return orUnsupported(err)
	}
	if name == "items" {
		if l.seenItems || l.data[l.pos] != '[' {
			return ErrUnsupportedList
		}
		l.seenItems = true
		l.pos++
		return l.array()
	}
	if _, twice := l.members[name]; twice || jsontext.ShadowsTypeMeta(name) {
		return ErrUnsupportedList
	}
	value, err := l.value()
	l.members[name] = value
	return err
}

// array reads the items up to the closing bracket.
func (l *listReader) array() error {
	c, err := l.next()
	if err != nil {
		return orUnsupported(err)
	}
	if c == ']' {
		l.pos++
		return nil
	}
	for {
		if _, err := l.next(); err != nil {
			return orUnsupported(err)
		}
		if err := l.item(); err != nil {
			return err
		}
		c, err := l.next()
		if err != nil {
			return orUnsupported(err)
		}
		l.pos++
		if c == ']' {
			return nil
		}
		if c != ',' {
			return ErrUnsupportedList
		}
	}
}

// item packs the item at pos.
func (l *listReader) item() error {
	kind, version := l.itemKind()
	for {
		object, end, more := l.packer.TryItem(l.data, l.pos, version, kind)
		switch {
		case object == packed.Filtered:
			l.pos = end
			return nil
		case object != nil:
			l.list.Items = append(l.list.Items, l.packer.ListForm(object))
			l.pos = end
			return nil
		case more:
			if err := l.grow(); err != nil {
				return orUnsupported(err)
			}
		case end > 0 && kind == "":
			l.untyped = append(l.untyped,
				untypedItem{len(l.list.Items), append([]byte(nil), l.data[l.pos:end]...)})
			l.list.Items = append(l.list.Items, nil)
			l.pos = end
			return nil
		default:
			return ErrUnsupportedList
		}
	}
}

// itemKind returns the default kind and version of items, or empty strings while they are unknown.
func (l *listReader) itemKind() (kind, version string) {
	kind, _ = l.members["kind"].(string)
	version, _ = l.members["apiVersion"].(string)
	if kind == "" || version == "" {
		return "", ""
	}
	return strings.TrimSuffix(kind, "List"), version
}

// finish checks the list, packs untyped items and sets the list's metadata.
func (l *listReader) finish() error {
	gvk := kindOf(l.members)
	if gvk == nil || !l.seenItems || isTable(*gvk) || gvk.Kind == "Status" {
		return ErrUnsupportedList
	}
	kind, version := l.itemKind()
	for _, item := range l.untyped {
		object, _, _ := l.packer.Unfiltered().TryItem(item.json, 0, version, kind)
		if object == nil {
			return ErrUnsupportedList
		}
		l.list.Items[item.index] = l.packer.ListForm(object)
	}
	content := unstructured.UnstructuredList{Object: l.members}
	l.list.APIVersion, l.list.Kind = version, gvk.Kind
	l.list.ResourceVersion, l.list.Continue = content.GetResourceVersion(), content.GetContinue()
	l.list.RemainingItemCount = content.GetRemainingItemCount()
	l.list.SetSelfLink(content.GetSelfLink())
	if selector, found, _ := unstructured.NestedString(l.members, "metadata", "shardInfo",
		"selector"); found {
		newer.SetShardInfo(&l.list.ListMeta, selector)
	}
	return nil
}

// kindOf returns the kind and version of an object, or nil if one of them is missing or invalid.
func kindOf(content map[string]any) *schema.GroupVersionKind {
	version, _ := content["apiVersion"].(string)
	kind, _ := content["kind"].(string)
	gv, err := schema.ParseGroupVersion(version)
	if err != nil || gv.Version == "" || kind == "" {
		return nil
	}
	gvk := gv.WithKind(kind)
	return &gvk
}

// envelope decodes the list without its items.
var envelope = jsontext.NewDecoder()

// value decodes the value at pos.
func (l *listReader) value() (any, error) {
	if _, err := l.next(); err != nil {
		return nil, orUnsupported(err)
	}
	for {
		end, ok, more := jsontext.SkipValue(l.data, l.pos)
		if !ok {
			if !more {
				return nil, ErrUnsupportedList
			}
			if err := l.grow(); err != nil {
				return nil, orUnsupported(err)
			}
			continue
		}
		value, err := envelope.DecodeValue(l.data[l.pos:end])
		if err != nil {
			return nil, ErrUnsupportedList
		}
		l.pos = end
		return value, nil
	}
}

// next skips white space and returns the byte at pos.
func (l *listReader) next() (byte, error) {
	for {
		for l.pos < len(l.data) && jsontext.IsSpace(l.data[l.pos]) {
			l.pos++
		}
		if l.pos < len(l.data) {
			return l.data[l.pos], nil
		}
		if err := l.grow(); err != nil {
			return 0, err
		}
	}
}

// grow discards consumed data and reads more. At the end of the source it returns io.EOF.
func (l *listReader) grow() error {
	if l.ended {
		return io.EOF
	}
	if l.pos > 0 {
		l.data = l.data[:copy(l.data, l.data[l.pos:])]
		l.pos = 0
	}
	if len(l.data) == cap(l.data) {
		if len(l.data) >= maxItem {
			return fmt.Errorf("read list: item exceeds %d bytes", maxItem)
		}
		l.data = append(make([]byte, 0, 2*cap(l.data)), l.data...)
	}
	before := len(l.data)
	// Read at least half a buffer, because a partial item is scanned again.
	for len(l.data) == before || len(l.data) < cap(l.data)/2 {
		n, err := l.source.Read(l.data[len(l.data):cap(l.data)])
		l.data = l.data[:len(l.data)+n]
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && len(l.data) > before:
			l.ended = true
			return nil
		default:
			return err
		}
	}
	return nil
}
