package disk

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// content is what a view holds.
type content map[string]string

// at returns the checkpoint of a content: its version is what tells contents apart.
func at(version int, c content) dynamicinformer.Checkpoint {
	return dynamicinformer.Checkpoint{ResourceVersion: fmt.Sprint(version), Objects: len(c), Time: time.Now()}
}

// newStore returns a Store on a file system that ends with the test.
func newStore(t testing.TB, fs vfs.FS) *Store {
	t.Helper()
	s := New("/state", Options{fs: fs})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func claim(t testing.TB, s *Store, key string) dynamicinformer.PersistedView {
	t.Helper()
	v, err := s.View(key)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func save(t testing.TB, v dynamicinformer.PersistedView, version int, c content) {
	t.Helper()
	if err := saveAll(v, version, c); err != nil {
		t.Fatal(err)
	}
}

func saveAll(v dynamicinformer.PersistedView, version int, c content) error {
	return v.Save(at(version, c), true, func(w dynamicinformer.PersistenceWriter) error {
		for _, key := range slices.Sorted(maps.Keys(c)) {
			if err := w.Put(key, []byte(c[key])); err != nil {
				return err
			}
		}
		return nil
	})
}

// saveChanges saves what has become of one content.
func saveChanges(v dynamicinformer.PersistedView, version int, before, c content) error {
	return v.Save(at(version, c), false, func(w dynamicinformer.PersistenceWriter) error {
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

// load returns what a view holds, by the texts of its objects, and its version; empty for nothing.
func load(v dynamicinformer.PersistedView) (version string, texts []string, err error) {
	at, ok, err := v.Checkpoint()
	if err != nil || !ok {
		return "", nil, err
	}
	err = v.Load(func(json []byte) error {
		texts = append(texts, string(bytes.Clone(json)))
		return nil
	})
	if err == nil && len(texts) != at.Objects {
		err = fmt.Errorf("%d objects of %d", len(texts), at.Objects)
	}
	slices.Sort(texts)
	return at.ResourceVersion, texts, err
}

func (c content) texts() []string { return slices.Sorted(maps.Values(c)) }

// numbered returns a content of some objects.
func numbered(n, round int) content {
	c := content{}
	for k := range n {
		c[fmt.Sprintf("ns/object-%04d", k)] = fmt.Sprintf(`{"kind":"Thing","number":%d,"round":%d,"text":"something that repeats"}`, k, round)
	}
	return c
}

// files returns the paths of all files below a folder.
func files(t testing.TB, fs vfs.FS, dir string) []string {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, name := range names {
		path := fs.PathJoin(dir, name)
		info, err := fs.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			all = append(all, files(t, fs, path)...)
		} else {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}
