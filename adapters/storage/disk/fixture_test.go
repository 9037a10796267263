package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

// init places temporary folders in memory where possible, because the tests sync thousands of times.
func init() {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() && os.Getenv("TMPDIR") == "" {
		_ = os.Setenv("TMPDIR", "/dev/shm") // without it, the tests only take longer
	}
}

// objectTexts is the expected stored content, by key.
type objectTexts map[string]string

// checkpointOf returns the checkpoint of a content. Its resource version is version.
func checkpointOf(version int, c objectTexts) persistence.Checkpoint {
	return persistence.Checkpoint{ResourceVersion: fmt.Sprint(version), Objects: len(c), Time: time.Now()}
}

func viewOf(name string) persistence.View {
	return persistence.View{Resource: schema.GroupVersionResource{Version: "v1", Resource: name}, Complete: true}
}

// newStore returns a Store on a folder. The test's cleanup closes it.
func newStore(t testing.TB, dir string, options Options) *Store {
	t.Helper()
	s := New(dir, options)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func openContent(t testing.TB, s *Store, name string) *storedContent {
	t.Helper()
	content, err := s.Open(t.Context(), viewOf(name))
	must(t, err)
	return content.(*storedContent)
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	must(t, s.Close(context.Background()))
}

func save(t testing.TB, content *storedContent, version int, c objectTexts) {
	t.Helper()
	must(t, saveAll(content, version, c))
}

// saveAll saves a content as records with one object each: its key and text.
func saveAll(content *storedContent, version int, c objectTexts) error {
	at := checkpointOf(version, c)
	return content.Save(context.Background(), at, true, func(put persistence.PutRecord) error {
		for _, key := range slices.Sorted(maps.Keys(c)) {
			if err := put([]byte(key+" "), []byte(c[key])); err != nil {
				return err
			}
		}
		return nil
	})
}

// saveChanges saves the changes between two contents.
func saveChanges(content *storedContent, version int, before, c objectTexts) error {
	at := checkpointOf(version, c)
	return content.Save(context.Background(), at, false, func(put persistence.PutRecord) error {
		var errs []error
		for key, text := range c {
			if before[key] != text {
				errs = append(errs, put([]byte(key+" "+text), nil))
			}
		}
		for key := range before {
			if _, stays := c[key]; !stays {
				errs = append(errs, put([]byte(key), nil))
			}
		}
		return errors.Join(errs...)
	})
}

// load returns the version and the texts of a stored content, or zero values if nothing is stored.
func load(content *storedContent) (version string, texts []string, err error) {
	var checkpoint persistence.Checkpoint
	c := objectTexts{}
	onRecord := func(record persistence.Record) error {
		key, text, isObject := strings.Cut(string(record.Head), " ")
		if record.Bodies != nil {
			bodies, err := record.Bodies()
			if text = string(bodies); err != nil || record.Retained == 0 {
				return errors.Join(errors.New("no bodies"), err)
			}
		}
		if c[key] = text; !isObject {
			delete(c, key)
		}
		return nil
	}
	err = content.Load(context.Background(),
		func(at persistence.Checkpoint, load persistence.LoadFunc) error {
			checkpoint = at
			return load(onRecord)
		})
	if err == nil && len(c) != checkpoint.Objects {
		err = fmt.Errorf("%d objects of %d", len(c), checkpoint.Objects)
	}
	return checkpoint.ResourceVersion, c.texts(), err
}

func (c objectTexts) texts() []string { return slices.Sorted(maps.Values(c)) }

func numbered(n, round int) objectTexts {
	c := objectTexts{}
	for k := range n {
		c[fmt.Sprintf("ns/object-%04d", k)] = fmt.Sprintf(`{"kind":"Thing","number":%d,"round":%d}`, k, round)
	}
	return c
}

func listFiles(t testing.TB, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	must(t, err)
	return paths
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return text
}

func write(t testing.TB, path string, text []byte) {
	t.Helper()
	must(t, os.WriteFile(path, text, privateMode))
}

// testDisk is a disk that fails, hangs, or loses what was not synced.
type testDisk struct {
	mu sync.Mutex
	// left is the number of operations that succeed before failure; negative means all.
	left    int
	failure error
	// synced has the size that each path had at its last sync, replaced the former content of a path whose
	// new name is not synced; nil if there was none.
	synced   map[string]int
	replaced map[string][]byte
	hang     chan struct{} // if not nil, operations send to hanging and wait until it is closed
	hanging  chan struct{}
}

func newDisk() *testDisk {
	return &testDisk{left: -1, synced: map[string]int{}, replaced: map[string][]byte{},
		hanging: make(chan struct{}, 9)}
}

func (d *testDisk) setLeft(n int, failure error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.failure = n, failure
}

// do is Options.disk.
func (d *testDisk) do(operation, path string) error {
	d.mu.Lock()
	hang := d.hang
	d.mu.Unlock()
	if hang != nil {
		d.hanging <- struct{}{}
		<-hang
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left == 0 {
		return d.failure
	}
	d.left--
	info, err := os.Stat(path)
	switch {
	case operation == "rename":
		if d.replaced[path] = nil; err == nil {
			d.replaced[path], _ = os.ReadFile(path)
		}
		d.synced[path] = d.synced[path+newSuffix]
	case operation == "sync" && err == nil && info.IsDir():
		clear(d.replaced)
	case operation == "sync" && err == nil:
		d.synced[path] = int(info.Size())
	}
	return nil
}

// losePower changes the files below a folder as a power failure would: it removes or damages what was not
// synced.
func (d *testDisk) losePower(t *testing.T, dir string, random *rand.Rand) {
	for _, path := range listFiles(t, dir) {
		text := read(t, path)
		if synced := d.synced[path]; synced < len(text) {
			kept := synced + random.IntN(len(text)-synced+1)
			if random.IntN(2) == 0 {
				clear(text[synced:kept])
			}
			write(t, path, text[:kept])
		}
	}
	for path, text := range d.replaced {
		switch {
		case random.IntN(2) == 0: // the new name has reached the disk
		case text == nil:
			_ = os.Remove(path)
		default:
			write(t, path, text)
		}
	}
	clear(d.replaced)
	for _, path := range listFiles(t, dir) {
		d.synced[path] = len(read(t, path))
	}
}
