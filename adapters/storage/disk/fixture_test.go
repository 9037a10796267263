package disk

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

// objectTexts is the expected stored content, by key.
type objectTexts map[string]string

// checkpointOf returns the checkpoint of a content. Its resource version is version.
func checkpointOf(version int, c objectTexts) persistence.Checkpoint {
	return persistence.Checkpoint{ResourceVersion: fmt.Sprint(version), Objects: len(c), Time: time.Now()}
}

// newStore returns a Store on a file system. The test's cleanup closes it.
func newStore(t testing.TB, fs vfs.FS) *Store {
	t.Helper()
	s := New("/state", Options{fs: fs})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openContent(t testing.TB, s *Store, key string) persistence.StoredContent {
	t.Helper()
	content, err := s.Open(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func save(t testing.TB, content persistence.StoredContent, version int, c objectTexts) {
	t.Helper()
	if err := saveAll(content, version, c); err != nil {
		t.Fatal(err)
	}
}

// blockObjects is the number of objects per block in saveAll. The remaining objects are saved without a
// block.
const blockObjects = 7

// saveAll saves a content in blocks. The index of a block has the keys, the bodies have the texts, one per
// line.
func saveAll(content persistence.StoredContent, version int, c objectTexts) error {
	return content.(persistence.BlockContent).SaveBlocks(context.Background(), checkpointOf(version, c), true,
		func(w persistence.BlockWriter) error {
			keys := slices.Sorted(maps.Keys(c))
			for ; len(keys) >= blockObjects; keys = keys[blockObjects:] {
				var bodies []string
				for _, key := range keys[:blockObjects] {
					bodies = append(bodies, c[key])
				}
				if err := w.PutBlock([]byte(strings.Join(keys[:blockObjects], "\n")),
					[]byte(strings.Join(bodies, "\n"))); err != nil {
					return err
				}
			}
			for _, key := range keys {
				if err := w.Put(key, []byte(c[key])); err != nil {
					return err
				}
			}
			return nil
		})
}

// saveChanges saves the changes between two contents.
func saveChanges(content persistence.StoredContent, version int, before, c objectTexts) error {
	return content.Save(context.Background(), checkpointOf(version, c), false,
		func(w persistence.Writer) error {
			for key, text := range c {
				if before[key] != text {
					if err := w.Put(key, []byte(text)); err != nil {
						return err
					}
				}
			}
			for key := range before {
				if _, stays := c[key]; !stays {
					if err := w.Delete(key); err != nil {
						return err
					}
				}
			}
			return nil
		})
}

// load returns the version and the texts of a stored content, or zero values if nothing is stored.
func load(content persistence.StoredContent) (version string, texts []string, err error) {
	checkpoint, ok, err := content.Checkpoint(context.Background())
	if err != nil || !ok {
		return "", nil, err
	}
	changed := map[string]string{}
	err = content.(persistence.BlockContent).LoadBlocks(context.Background(), func(key string,
		json []byte) error {
		changed[key] = string(json)
		return nil
	}, func(head []byte, bodies func() ([]byte, error), _ int) error {
		text, err := bodies()
		if err != nil {
			return err
		}
		lines := strings.Split(string(text), "\n")
		for k, key := range strings.Split(string(head), "\n") {
			if _, overwritten := changed[key]; !overwritten {
				texts = append(texts, lines[k])
			}
		}
		return nil
	})
	for _, text := range changed {
		if text != "" {
			texts = append(texts, text)
		}
	}
	if err == nil && len(texts) != checkpoint.Objects {
		err = fmt.Errorf("%d objects of %d", len(texts), checkpoint.Objects)
	}
	slices.Sort(texts)
	return checkpoint.ResourceVersion, texts, err
}

func (c objectTexts) texts() []string { return slices.Sorted(maps.Values(c)) }

func numbered(n, round int) objectTexts {
	c := objectTexts{}
	for k := range n {
		c[fmt.Sprintf("ns/object-%04d",
			k)] = fmt.Sprintf(`{"kind":"Thing","number":%d,"round":%d,"text":"something that repeats"}`,
			k, round)
	}
	return c
}

func listFiles(t testing.TB, fs vfs.FS, dir string) []string {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			paths = append(paths, listFiles(t, fs, path)...)
		} else {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}
