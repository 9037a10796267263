package codec

import (
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/packed"
)

// ErrUnusual is returned by ReadList for what is not a list of the usual form: the dynamic client has to say
// what it is. Errors of the reader are returned as they are.
var ErrUnusual = errors.New("not a list of the usual form")

const (
	// listBuffer is how much of a list is in memory at first, beside the packed objects.
	listBuffer = 64 << 10
	// maxItem is the size of the largest item that is looked for; API servers have none that large.
	maxItem = 128 << 20
)

// ReadList reads the JSON of a list and packs its items one by one. At most one item at a time is in memory
// as it came: the list holds each in the form that packer.Listed returns.
func ReadList(r io.Reader, packer *packed.Packer) (*packed.List, error) {
	l := &listReader{source: r, packer: packer, data: make([]byte, 0, listBuffer),
		list: &packed.List{Items: []*packed.Object{}}}
	if err := l.read(); err != nil {
		return nil, err
	}
	return l.list, nil
}

// listReader reads one list.
type listReader struct {
	source  io.Reader
	packer  *packed.Packer
	data    []byte // what has been read and not been used up yet
	pos     int    // in data
	ended   bool   // the source has nothing more
	list    *packed.List
	members map[string]any // of the list, but for the items
	items   bool           // were there
	late    []lateItem
}

// lateItem is an item that lacks a kind and came before the kind of the list.
type lateItem struct {
	index int
	json  []byte
}

// read reads the whole list.
func (l *listReader) read() error {
	l.members = map[string]any{}
	if c, err := l.next(); err != nil || c != '{' {
		return orUnusual(err)
	}
	l.pos++
	if err := l.object(); err != nil {
		return err
	}
	if _, err := l.next(); !errors.Is(err, io.EOF) {
		return orUnusual(err)
	}
	return l.finish()
}

func orUnusual(err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return ErrUnusual
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
			return orUnusual(err)
		}
		l.pos++
		if err := l.member(name); err != nil {
			return err
		}
		c, err := l.next()
		if err != nil {
			return orUnusual(err)
		}
		l.pos++
		switch c {
		case '}':
			return nil
		case ',':
			if c, err := l.next(); err != nil || c != '"' {
				return orUnusual(err)
			}
		default:
			return ErrUnusual
		}
	}
}

// member reads the value of a key of the list.
func (l *listReader) member(name string) error {
	if _, err := l.next(); err != nil {
		return orUnusual(err)
	}
	if name == "items" {
		if l.items || l.data[l.pos] != '[' {
			return ErrUnusual
		}
		l.items = true
		l.pos++
		return l.array()
	}
	if _, twice := l.members[name]; twice || jsontext.Shadows(name) {
		return ErrUnusual
	}
	value, err := l.value()
	l.members[name] = value
	return err
}

// array reads the items up to the closing bracket.
func (l *listReader) array() error {
	c, err := l.next()
	if err != nil {
		return orUnusual(err)
	}
	if c == ']' {
		l.pos++
		return nil
	}
	for {
		if _, err := l.next(); err != nil {
			return orUnusual(err)
		}
		if err := l.item(); err != nil {
			return err
		}
		c, err := l.next()
		if err != nil {
			return orUnusual(err)
		}
		l.pos++
		if c == ']' {
			return nil
		}
		if c != ',' {
			return ErrUnusual
		}
	}
}

// item packs the item at pos.
func (l *listReader) item() error {
	kind, version := l.itemKind()
	for {
		object, end, more := l.packer.TryItem(l.data, l.pos, version, kind)
		switch {
		case object == packed.Unwanted:
			l.pos = end
			return nil
		case object != nil:
			l.list.Items = append(l.list.Items, l.packer.Listed(object))
			l.pos = end
			return nil
		case more:
			if err := l.grow(); err != nil {
				return orUnusual(err)
			}
		case end > 0 && kind == "":
			l.late = append(l.late, lateItem{len(l.list.Items), append([]byte(nil), l.data[l.pos:end]...)})
			l.list.Items = append(l.list.Items, nil)
			l.pos = end
			return nil
		default:
			return ErrUnusual
		}
	}
}

// itemKind returns the kind and version of items that have none, or nothing as long as that is not known.
func (l *listReader) itemKind() (kind, version string) {
	kind, _ = l.members["kind"].(string)
	version, _ = l.members["apiVersion"].(string)
	if kind == "" || version == "" {
		return "", ""
	}
	return strings.TrimSuffix(kind, "List"), version
}

// finish checks the list and fills in what is outside the items.
func (l *listReader) finish() error {
	gvk := kindOf(l.members)
	if gvk == nil || !l.items || isTable(*gvk) || gvk.Kind == "Status" {
		return ErrUnusual
	}
	kind, version := l.itemKind()
	for _, item := range l.late {
		object, _, _ := l.packer.All().TryItem(item.json, 0, version, kind)
		if object == nil {
			return ErrUnusual
		}
		l.list.Items[item.index] = l.packer.Listed(object)
	}
	content := unstructured.UnstructuredList{Object: l.members}
	l.list.APIVersion, l.list.Kind = version, gvk.Kind
	l.list.ResourceVersion, l.list.Continue = content.GetResourceVersion(), content.GetContinue()
	l.list.RemainingItemCount = content.GetRemainingItemCount()
	l.list.SetSelfLink(content.GetSelfLink())
	if selector, found, _ := unstructured.NestedString(l.members, "metadata", "shardInfo",
		"selector"); found {
		l.list.ShardInfo = &metav1.ShardInfo{Selector: selector}
	}
	return nil
}

// kindOf returns the kind of an object that has a valid one, and a version; otherwise nil.
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

// envelope decodes what is around the items.
var envelope = jsontext.NewDecoder()

// value decodes the value at pos.
func (l *listReader) value() (any, error) {
	if _, err := l.next(); err != nil {
		return nil, orUnusual(err)
	}
	for {
		end, ok, more := jsontext.SkipValue(l.data, l.pos)
		if !ok {
			if !more {
				return nil, ErrUnusual
			}
			if err := l.grow(); err != nil {
				return nil, orUnusual(err)
			}
			continue
		}
		value, err := envelope.DecodeValue(l.data[l.pos:end])
		if err != nil {
			return nil, ErrUnusual
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

// grow reads more behind what has not been used up. At the end of the source it returns io.EOF.
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
			return fmt.Errorf("reading a list: an item of more than %d bytes", maxItem)
		}
		l.data = append(make([]byte, 0, 2*cap(l.data)), l.data...)
	}
	before := len(l.data)
	// Half a buffer at least, because what is there in part is scanned again.
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
