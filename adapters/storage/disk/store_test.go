package disk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

func expect(t *testing.T, content *storedContent, version string, want []string) {
	t.Helper()
	got, texts, err := load(content)
	if err != nil || got != version || !cmp.Equal(want, texts) {
		t.Fatalf("the content has version %q, %d objects, %v; want %q, %d objects", got, len(texts), err,
			version, len(want))
	}
}

func TestSaveAndLoad(t *testing.T) {
	dir := t.TempDir()
	store := newStore(t, dir, Options{})
	content, other := openContent(t, store, "widgets"), openContent(t, store, "gadgets")
	expect(t, content, "", nil)
	if err := saveChanges(content, 1, nil, numbered(1, 1)); !errors.Is(err, errNoContent) {
		t.Errorf("saveChanges() without previous content = %v, want errNoContent", err)
	}
	first, second := numbered(500, 1), numbered(300, 2)
	save(t, content, 1, first)
	save(t, other, 9, numbered(10, 9))
	expect(t, content, "1", first.texts())
	save(t, content, 2, second)
	expect(t, content, "2", second.texts())
	third := numbered(299, 2)
	third["ns/object-0007"] = "{}"
	third["ns/new"] = `{"new":true}`
	must(t, saveChanges(content, 3, second, third))
	expect(t, content, "3", third.texts())
	save(t, content, 4, nil)
	expect(t, content, "4", nil)
	expect(t, other, "9", numbered(10, 9).texts())
	closeStore(t, store)
	if _, err := store.Open(t.Context(), viewOf("widgets")); !errors.Is(err, ErrClosed) {
		t.Errorf("Open() of a closed Store = %v, want ErrClosed", err)
	}
	expect(t, openContent(t, newStore(t, dir, Options{}), "gadgets"), "9", numbered(10, 9).texts())
}

// TestNeedsRewrite verifies that a content is written again when its changes need a quarter of its size, so
// that the file stays below 1.5 times the size of its objects.
func TestNeedsRewrite(t *testing.T) {
	content := openContent(t, newStore(t, t.TempDir(), Options{}), "widgets")
	if !content.NeedsRewrite() {
		t.Error("NeedsRewrite() = false without content, want true")
	}
	c := numbered(2500, 1)
	save(t, content, 1, c)
	size := func() int64 {
		info, err := os.Stat(content.path)
		must(t, err)
		return info.Size()
	}
	whole, rewrites := size(), 0
	for version := 2; version < 40; version++ {
		next := maps.Clone(c)
		maps.Copy(next, numbered(150, version))
		if content.NeedsRewrite() {
			save(t, content, version, next)
			rewrites++
		} else if err := saveChanges(content, version, c, next); err != nil {
			t.Fatal(err)
		}
		if c = next; size() > whole*3/2 {
			t.Fatalf("the file has %d bytes for %d bytes of objects", size(), whole)
		}
	}
	if rewrites == 0 || rewrites > 12 {
		t.Errorf("the content was written again %d times of 38", rewrites)
	}
}

func TestContentsExpire(t *testing.T) {
	dir := t.TempDir()
	store := newStore(t, dir, Options{})
	old := openContent(t, store, "old")
	save(t, old, 1, numbered(1, 1))
	save(t, openContent(t, store, "new"), 2, numbered(3, 1))
	closeStore(t, store)
	then := time.Now().Add(-60 * 24 * time.Hour)
	must(t, os.Chtimes(old.path, then, then))
	store = newStore(t, dir, Options{})
	expect(t, openContent(t, store, "old"), "", nil)
	expect(t, openContent(t, store, "new"), "2", numbered(3, 1).texts())
}

// TestFilesArePrivate checks the modes of all files on a real disk.
func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	store := newStore(t, dir, Options{})
	content := openContent(t, store, "widgets")
	save(t, content, 1, numbered(100, 1))
	must(t, saveChanges(content, 2, numbered(100, 1), numbered(99, 1)))
	checkModes := func() {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has the mode %v, want access for the owner only", path, info.Mode())
			}
			return err
		})
		must(t, err)
	}
	checkModes()
	closeStore(t, store)
	checkModes()
}

const otherProcess = "CRDCACHE_DISK_OTHER_PROCESS"

// TestOneProcess verifies that neither this process nor another one can open a folder that is in use.
func TestOneProcess(t *testing.T) {
	if dir := os.Getenv(otherProcess); dir != "" {
		_, err := New(dir, Options{}).Open(context.Background(), viewOf("widgets"))
		if !errors.Is(err, ErrInUse) {
			t.Fatalf("Open() in another process = %v, want ErrInUse", err)
		}
		return
	}
	dir := t.TempDir()
	store := newStore(t, dir, Options{})
	content := openContent(t, store, "widgets")
	if _, err := New(dir, Options{}).Open(context.Background(), viewOf("widgets")); !errors.Is(err, ErrInUse) ||
		!strings.Contains(err.Error(), dir) {
		t.Errorf("Open() of another Store = %v, want ErrInUse", err)
	}
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOneProcess$")
	other.Env = append(os.Environ(), otherProcess+"="+dir)
	if out, err := other.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	save(t, content, 1, numbered(3, 1))
	closeStore(t, store)
	store = newStore(t, dir, Options{})
	expect(t, openContent(t, store, "widgets"), "1", numbered(3, 1).texts())
	closeStore(t, store)
}

// TestSaveFails verifies that if the writer of a content fails, the previous content remains.
func TestSaveFails(t *testing.T) {
	s := newStore(t, t.TempDir(), Options{})
	content := openContent(t, s, "widgets")
	save(t, content, 1, numbered(10, 1))
	failure := errors.New("no")
	for _, whole := range []bool{false, true} {
		err := content.Save(context.Background(), checkpointOf(2, nil), whole,
			func(put persistence.PutRecord) error { return errors.Join(put([]byte("ns/a {}"), nil), failure) })
		if !errors.Is(err, failure) {
			t.Errorf("saving with a failing writer = %v, want its error", err)
		}
		if err := saveChanges(content, 2, numbered(10, 1), nil); !errors.Is(err, errNoContent) {
			t.Errorf("saveChanges() after a failure = %v, want errNoContent", err)
		}
		expect(t, content, "1", numbered(10, 1).texts())
	}
}

func TestOneOpenContentPerView(t *testing.T) {
	s := newStore(t, t.TempDir(), Options{})
	content := openContent(t, s, "widgets")
	if _, err := s.Open(t.Context(), viewOf("widgets")); !errors.Is(err, ErrContentInUse) {
		t.Errorf("the second Open() = %v, want ErrContentInUse", err)
	}
	must(t, content.Close())
	openContent(t, s, "widgets")
}

// TestFolderCannotBeUsed verifies that opening fails if the parent of the folder is a file.
func TestFolderCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, privateMode))
	s := New(filepath.Join(file, "state"), Options{})
	if _, err := s.Open(t.Context(), viewOf("widgets")); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("Open() = %v, want an error that names the file", err)
	}
	closeStore(t, s)
}

func key(n byte) []byte { return bytes.Repeat([]byte{n}, 32) }

// TestKeys verifies that content can be loaded only with a key that it was saved with, and that keys can be
// changed.
func TestKeys(t *testing.T) {
	dir, objects := t.TempDir(), numbered(3, 1)
	with := func(keys [][]byte, f func(c *storedContent)) {
		t.Helper()
		s := newStore(t, dir, Options{Keys: keys})
		f(openContent(t, s, "widgets"))
		closeStore(t, s)
	}
	expectErrKey := func(reason string, keys ...[]byte) {
		t.Helper()
		with(keys, func(c *storedContent) {
			if version, texts, err := load(c); !errors.Is(err, ErrKey) || version != "" || len(texts) > 0 {
				t.Errorf("%s: load() = %q, %d objects, %v, want ErrKey", reason, version, len(texts), err)
			}
		})
	}
	expectContent := func(reason string, needsRewrite bool, keys ...[]byte) {
		t.Helper()
		with(keys, func(c *storedContent) {
			expect(t, c, "1", objects.texts())
			if c.NeedsRewrite() != needsRewrite {
				t.Errorf("%s: NeedsRewrite() = %v, want %v", reason, c.NeedsRewrite(), needsRewrite)
			}
		})
	}
	saveWith := func(keys ...[]byte) { with(keys, func(c *storedContent) { save(t, c, 1, objects) }) }
	saveWith(key(1))
	expectContent("the key", false, key(1))
	expectContent("the old key after another", true, key(2), key(1))
	expectContent("the key before an older one", false, key(1), key(2))
	expectErrKey("another key", key(2))
	expectErrKey("no key")
	with([][]byte{key(2), key(1)}, func(c *storedContent) {
		expect(t, c, "1", objects.texts())
		must(t, saveChanges(c, 1, objects, objects))
	})
	expectErrKey("an old key before changes", key(2))
	saveWith(key(2), key(1))
	expectContent("the new key alone", false, key(2))
	expectErrKey("the old key alone", key(1))
	saveWith()
	expectErrKey("a key for unencrypted content", key(1))
	expectContent("no key for unencrypted content", false)
}

// TestWrongKeys verifies that keys of the wrong length are rejected.
func TestWrongKeys(t *testing.T) {
	s := New(t.TempDir(), Options{Keys: [][]byte{key(1), []byte("too short")}})
	if _, err := s.Open(context.Background(), viewOf("widgets")); err == nil ||
		!strings.Contains(err.Error(), "Options.Keys[1] has 9 bytes") {
		t.Errorf("Open() = %v, want an error about the key's length", err)
	}
}

// TestSealed verifies that the files contain no plaintext, that equal contents are encrypted differently, and
// that the name of a file does not contain its type.
func TestSealed(t *testing.T) {
	dir := t.TempDir()
	s := newStore(t, dir, Options{Keys: [][]byte{key(1)}})
	c := openContent(t, s, "confidentials")
	var texts [][]byte
	for range 2 {
		save(t, c, 1, objectTexts{"a": "confidential"})
		for _, path := range listFiles(t, dir) {
			text := append([]byte(path), read(t, path)...)
			if bytes.Contains(text, []byte("confidential")) {
				t.Errorf("%s contains the plaintext", path)
			}
			texts = append(texts, text)
		}
	}
	if slices.EqualFunc(texts[:2], texts[2:], bytes.Equal) {
		t.Error("equal contents have equal files")
	}
}

// TestCloseDuringUse verifies that Close waits for running loads and saves. Later calls return an error.
func TestCloseDuringUse(t *testing.T) {
	store := newStore(t, t.TempDir(), Options{})
	var users sync.WaitGroup
	var started sync.WaitGroup
	for k := range 3 {
		content := openContent(t, store, fmt.Sprint("widgets", k))
		save(t, content, 1, numbered(200, 1))
		started.Add(1)
		users.Go(func() { // ends with Close
			reportStarted := sync.OnceFunc(started.Done)
			defer reportStarted()
			for version := 2; ; version++ {
				_, _, err := load(content)
				if err == nil {
					err = saveAll(content, version, numbered(200, version))
				}
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
				reportStarted()
			}
		})
	}
	started.Wait()
	closeStore(t, store)
	users.Wait()
}
