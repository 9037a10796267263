package codec

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/internal/packed"
)

// ErrUnsupportedList is returned by ReadList for responses that are not typical lists. The caller lets the
// dynamic client decode them. Errors of the reader are returned unchanged.
var ErrUnsupportedList = errors.New("unsupported form of a list")

// maxItemSize limits the size of an item, in bytes; API servers store no objects of this size.
const maxItemSize = 128 << 20

// ReadList reads the JSON of a list and packs its items one by one, converted by packer.ForList. At most one
// item at a time is in memory as JSON.
func ReadList(r io.Reader, packer *packed.Packer) (*packed.List, error) {
	l := &listReader{Stream: jsontext.NewStream(r), packer: packer, members: map[string]any{},
		list: &packed.List{Items: []*packed.Object{}}}
	l.MaxValue = maxItemSize
	if err := l.readList(); err != nil {
		return nil, err
	}
	if _, err := l.Peek(); err == nil || !l.Ended() {
		return nil, l.failure()
	}
	return l.list, l.finish()
}

type listReader struct {
	*jsontext.Stream
	packer       *packed.Packer
	list         *packed.List
	members      map[string]any // members of the list, without items
	seenItems    bool           // items has been read
	untypedItems []untypedItem
}

// untypedItem is an item without a kind that came before the kind of the list.
type untypedItem struct {
	index int
	json  []byte
}

// failure returns the error of the reader, or ErrUnsupportedList if it has none.
func (l *listReader) failure() error { return cmp.Or(l.SourceError(), ErrUnsupportedList) }

// take consumes the next byte, which must be c.
func (l *listReader) take(c byte) error {
	if ok, _ := l.Take(c); !ok {
		return l.failure()
	}
	return nil
}

func (l *listReader) readList() error {
	if err := l.take('{'); err != nil {
		return err
	}
	for {
		name, err := l.Key()
		if err != nil {
			return l.failure()
		}
		if err := l.readMember(name); err != nil {
			return err
		}
		if closed, err := l.Next('}'); err != nil {
			return l.failure()
		} else if closed {
			return nil
		}
	}
}

func (l *listReader) readMember(name string) error {
	if name == "items" {
		if l.seenItems {
			return ErrUnsupportedList
		}
		l.seenItems = true
		return l.readItems()
	}
	if _, seen := l.members[name]; seen || jsontext.ShadowsTypeMeta(name) {
		return ErrUnsupportedList
	}
	value, err := l.readValue()
	l.members[name] = value
	return err
}

func (l *listReader) readItems() error {
	if err := l.take('['); err != nil {
		return err
	}
	if empty, _ := l.Take(']'); empty {
		return nil
	}
	for {
		if err := l.readItem(); err != nil {
			return err
		}
		if closed, err := l.Next(']'); err != nil {
			return l.failure()
		} else if closed {
			return nil
		}
	}
}

func (l *listReader) readItem() error {
	if _, err := l.Peek(); err != nil {
		return l.failure()
	}
	kind, version := l.itemKind()
	for {
		data := l.Buffered()
		object, end, needsMore := l.packer.TryItem(data, 0, version, kind)
		switch {
		case object == packed.Filtered:
		case object != nil:
			l.list.Items = append(l.list.Items, l.packer.ForList(object))
		case needsMore:
			if err := l.Fill(); err != nil {
				return l.failure()
			}
			continue
		case end > 0 && kind == "":
			l.untypedItems = append(l.untypedItems, untypedItem{len(l.list.Items), bytes.Clone(data[:end])})
			l.list.Items = append(l.list.Items, nil)
		default:
			return ErrUnsupportedList
		}
		l.Consume(end)
		return nil
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
	for _, item := range l.untypedItems {
		object, _, _ := l.packer.Unfiltered().TryItem(item.json, 0, version, kind)
		if object == nil {
			return ErrUnsupportedList
		}
		l.list.Items[item.index] = l.packer.ForList(object)
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

// memberDecoder decodes the list without its items.
var memberDecoder = jsontext.NewDecoder()

func (l *listReader) readValue() (any, error) {
	text, err := l.Value()
	if err != nil {
		return nil, l.failure()
	}
	value, err := memberDecoder.DecodeValue(text)
	if err != nil {
		return nil, ErrUnsupportedList
	}
	return value, nil
}
