package store

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
)

// ReadJSON calls read with the JSON of an item. readPacked reads a packed item: Object.ReadJSON, which
// marks the item as read, or Object.PeekJSON, which does not.
func ReadJSON(key string, item Item, readPacked func(*packed.Object, func([]byte) error) error,
	read func(key string, text []byte) error) error {
	if o, ok := item.(*packed.Object); ok {
		called := false
		err := readPacked(o, func(text []byte) error {
			called = true
			return read(key, text)
		})
		if err != nil && !called {
			return fmt.Errorf("%s: %w", key, err)
		}
		return err
	}
	text, err := encodeItem(item)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return read(key, text)
}

func AppendJSON(text []byte, item Item) ([]byte, error) {
	if o, ok := item.(*packed.Object); ok {
		return o.AppendJSON(text)
	}
	encoded, err := encodeItem(item)
	return append(text, encoded...), err
}

// encodeItem encodes an item that is stored decoded.
func encodeItem(item Item) ([]byte, error) {
	if u, ok := item.(*unstructured.Unstructured); ok && u != nil {
		return json.Marshal(u.Object)
	}
	return json.Marshal(item)
}
