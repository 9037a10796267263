package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

// blockContent is stored content: the bodies of blocks by their indexes, and the changes after the blocks.
type blockContent struct {
	Blocks  map[string]string
	Changes []string
}

func blocksOf(content persistence.StoredContent) persistence.BlockContent {
	return content.(persistence.BlockContent)
}

func loadBlocks(content persistence.StoredContent) (blockContent, error) {
	loaded := blockContent{Blocks: map[string]string{}}
	bodiesOf := map[string]func() ([]byte, error){}
	err := blocksOf(content).LoadBlocks(context.Background(), func(key string, json []byte) error {
		loaded.Changes = append(loaded.Changes, fmt.Sprintf("%s %s %v", key, json, json == nil))
		return nil
	}, func(head []byte, bodies func() ([]byte, error), size int) error {
		if size == 0 {
			return errors.New("a block takes no room")
		}
		bodiesOf[string(head)] = bodies
		return nil
	})
	for head, bodies := range bodiesOf {
		text, failure := bodies()
		err = errors.Join(err, failure)
		loaded.Blocks[head] = string(text)
	}
	return loaded, err
}

func saveBlocks(t testing.TB, content persistence.StoredContent, blocks map[string]string, puts ...string) {
	t.Helper()
	err := blocksOf(content).SaveBlocks(context.Background(), checkpointOf(1, nil), blocks != nil,
		func(w persistence.BlockWriter) error {
			for _, head := range slices.Sorted(maps.Keys(blocks)) {
				if err := w.PutBlock([]byte(head), []byte(blocks[head])); err != nil {
					return err
				}
			}
			for _, key := range puts {
				if err := w.Put(key, []byte("json of "+key)); err != nil {
					return err
				}
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
}

// TestBlocks saves blocks and changes, until the next complete content replaces them. Bodies stay readable
// after the store is closed.
func TestBlocks(t *testing.T) {
	store := newStore(t, vfs.NewMem())
	content := openContent(t, store, "widgets")
	blocks := map[string]string{"a head": "some bodies",
		"b head": string(bytes.Repeat([]byte("more "), 100_000))}
	saveBlocks(t, content, blocks, "odd")
	saveBlocks(t, content, nil, "a", "b")
	err := blocksOf(content).SaveBlocks(context.Background(), checkpointOf(2, nil), false,
		func(w persistence.BlockWriter) error { return w.Delete("a") })
	if err != nil {
		t.Fatal(err)
	}
	want := blockContent{blocks, []string{"odd json of odd false", "a json of a false",
		"b json of b false", "a  true"}}
	got, err := loadBlocks(content)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("loadBlocks() error %v (-want +got):\n%s", err, diff)
	}
	if err := content.Load(context.Background(), func([]byte) error { return nil }); !errors.Is(err,
		errStoredInBlocks) {
		t.Errorf("Load() of content in blocks = %v, want errStoredInBlocks", err)
	}
	var bodies func() ([]byte, error)
	err = blocksOf(content).LoadBlocks(context.Background(), func(string, []byte) error { return nil },
		func(_ []byte, b func() ([]byte, error), _ int) error {
			bodies = b
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	saveBlocks(t, content, map[string]string{"c head": "others"})
	got, err = loadBlocks(content)
	if diff := cmp.Diff(blockContent{Blocks: map[string]string{"c head": "others"}}, got); diff != "" ||
		err != nil {
		t.Errorf("loadBlocks() error %v (-want +got):\n%s", err, diff)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := bodies(); err != nil || string(text) != blocks["b head"] {
		t.Errorf("bodies after Close = %.20s, %v", text, err)
	}
}

// TestObjectsOfAnySize verifies that single objects, without blocks, are saved, changed, deleted and loaded.
func TestObjectsOfAnySize(t *testing.T) {
	content := openContent(t, newStore(t, vfs.NewMem()), "widgets")
	before := numbered(100, 1)
	for _, whole := range []bool{true, false} {
		err := content.Save(context.Background(), checkpointOf(1, before), whole,
			func(w persistence.Writer) error {
				if !whole {
					return errors.Join(w.Delete("ns/object-0000"), w.Put("ns/new", []byte("new")))
				}
				for _, key := range slices.Sorted(maps.Keys(before)) {
					if err := w.Put(key, []byte(before[key])); err != nil {
						return err
					}
				}
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := maps.Clone(before)
	delete(want, "ns/object-0000")
	want["ns/new"] = "new"
	var got []string
	if err := content.Load(context.Background(), func(json []byte) error {
		got = append(got, string(json))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want.texts(), got); diff != "" {
		t.Errorf("loaded objects (-want +got):\n%s", diff)
	}
}

// TestBlocksComeFirst verifies that blocks after objects and among changes are rejected.
func TestBlocksComeFirst(t *testing.T) {
	content := openContent(t, newStore(t, vfs.NewMem()), "widgets")
	big := bytes.Repeat([]byte("x"), logRecordSize)
	err := blocksOf(content).SaveBlocks(context.Background(), checkpointOf(1, nil), true,
		func(w persistence.BlockWriter) error {
			return errors.Join(w.Put("a", big), w.PutBlock([]byte("head"), nil))
		})
	if !errors.Is(err, errWriteOrder) {
		t.Errorf("a block after an object: error %v, want errWriteOrder", err)
	}
	saveBlocks(t, content, map[string]string{"a head": "some bodies"})
	err = blocksOf(content).SaveBlocks(context.Background(), checkpointOf(1, nil), false,
		func(w persistence.BlockWriter) error { return w.PutBlock([]byte("head"), nil) })
	if !errors.Is(err, errBlock) {
		t.Errorf("a block among changes: error %v, want errBlock", err)
	}
}
