package disk

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

func expect(t *testing.T, content persistence.StoredContent, version string, want []string) {
	t.Helper()
	got, texts, err := load(content)
	if err != nil || got != version || !cmp.Equal(want, texts) {
		t.Fatalf("the content has version %q, %d objects, %v; want %q, %d objects", got, len(texts), err,
			version, len(want))
	}
}

func TestSaveAndLoad(t *testing.T) {
	fs := vfs.NewMem()
	store := newStore(t, fs)
	content, other := openContent(t, store, "widgets"), openContent(t, store, "gadgets")
	expect(t, content, "", nil)
	if err := saveChanges(content, 1, nil, numbered(1, 1)); !errors.Is(err, errRemovedData) {
		t.Errorf("saveChanges() without previous content = %v, want errRemovedData", err)
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
	if err := saveChanges(content, 3, second, third); err != nil {
		t.Fatal(err)
	}
	expect(t, content, "3", third.texts())
	save(t, content, 4, nil)
	expect(t, content, "4", nil)
	expect(t, other, "9", numbered(10, 9).texts())
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(context.Background(), "widgets"); !errors.Is(err, ErrClosed) {
		t.Errorf("Open() of a closed Store = %v, want ErrClosed", err)
	}
	expect(t, openContent(t, newStore(t, fs), "gadgets"), "9", numbered(10, 9).texts())
}

func TestContentsExpire(t *testing.T) {
	fs := vfs.NewMem()
	store := newStore(t, fs)
	old := openContent(t, store, "old")
	err := old.Save(context.Background(), persistence.Checkpoint{ResourceVersion: "1",
		Time: time.Now().Add(-2 * defaultMaxAge)},
		true, func(w persistence.Writer) error {
			return w.Put("ns/a", []byte("{}"))
		})
	if err != nil {
		t.Fatal(err)
	}
	save(t, openContent(t, store, "new"), 2, numbered(3, 1))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = newStore(t, fs)
	expect(t, openContent(t, store, "old"), "", nil)
	expect(t, openContent(t, store, "new"), "2", numbered(3, 1).texts())
}

// TestFilesArePrivate checks the modes of all files on a real disk.
func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	store := New(dir, Options{})
	content := openContent(t, store, "widgets")
	save(t, content, 1, numbered(100, 1))
	if err := saveChanges(content, 2, numbered(100, 1), numbered(99, 1)); err != nil {
		t.Fatal(err)
	}
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
		if err != nil {
			t.Fatal(err)
		}
	}
	checkModes()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	checkModes()
}

const otherProcess = "CRDCACHE_DISK_OTHER_PROCESS"

// TestOneProcess verifies that neither this process nor another one can open a folder that is in use.
func TestOneProcess(t *testing.T) {
	if dir := os.Getenv(otherProcess); dir != "" {
		_, err := New(dir, Options{}).Open(context.Background(), "widgets")
		if !errors.Is(err, ErrInUse) {
			t.Fatalf("Open() in another process = %v, want ErrInUse", err)
		}
		return
	}
	dir := t.TempDir()
	store := New(dir, Options{})
	content := openContent(t, store, "widgets")
	if _, err := New(dir, Options{}).Open(context.Background(), "widgets"); !errors.Is(err, ErrInUse) ||
		!strings.Contains(err.Error(), dir) {
		t.Errorf("Open() of another Store = %v, want ErrInUse", err)
	}
	other := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOneProcess$")
	other.Env = append(os.Environ(), otherProcess+"="+dir)
	if out, err := other.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	save(t, content, 1, numbered(3, 1))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	store = New(dir, Options{})
	expect(t, openContent(t, store, "widgets"), "1", numbered(3, 1).texts())
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestSaveFails verifies that if the writer of a content fails, the previous content remains.
func TestSaveFails(t *testing.T) {
	s := newStore(t, vfs.NewMem())
	content := openContent(t, s, "widgets")
	save(t, content, 1, numbered(10, 1))
	failure := errors.New("no")
	for _, whole := range []bool{false, true} {
		err := content.Save(context.Background(), checkpointOf(2, nil), whole,
			func(w persistence.Writer) error {
				return errors.Join(w.Put("ns/a", []byte("{}")), failure)
			})
		if !errors.Is(err, failure) {
			t.Errorf("saving with a failing writer = %v, want its error", err)
		}
		if err := saveChanges(content, 2, numbered(10, 1), nil); !errors.Is(err, errRemovedData) {
			t.Errorf("saveChanges() after a failure = %v, want errRemovedData", err)
		}
		expect(t, content, "1", numbered(10, 1).texts())
	}
}

func TestOneOpenContentPerKey(t *testing.T) {
	s := newStore(t, vfs.NewMem())
	content := openContent(t, s, "widgets")
	if _, err := s.Open(context.Background(), "widgets"); !errors.Is(err, ErrContentInUse) {
		t.Errorf("the second Open() = %v, want ErrContentInUse", err)
	}
	if err := content.Close(); err != nil {
		t.Fatal(err)
	}
	openContent(t, s, "widgets")
}

// TestFolderCannotBeUsed verifies that opening fails if the parent of the folder is a file.
func TestFolderCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, privateMode); err != nil {
		t.Fatal(err)
	}
	s := New(filepath.Join(file, "state"), Options{})
	if _, err := s.Open(context.Background(), "widgets"); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("Open() = %v, want an error that names the file", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
