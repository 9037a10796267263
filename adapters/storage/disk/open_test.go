package disk

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// failingFS is a file system whose writes can fail, or block until release is closed.
type failingFS struct {
	vfs.FS
	failure    atomic.Pointer[error]
	writesLeft atomic.Int64 // number of writes that succeed
	hang       atomic.Bool
	release    chan struct{}
}

func newFailing(fs vfs.FS) *failingFS {
	f := &failingFS{release: make(chan struct{})}
	f.FS = errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		if f.hang.Load() {
			<-f.release
		}
		if why := f.failure.Load(); why != nil && f.writesLeft.Add(-1) < 0 {
			return *why
		}
		return nil
	}))
	return f
}

// TestNoRoomAtOpen opens the files of a killed process on a disk that fails after a number of writes. Open
// returns the cause, nothing is removed, and all objects are loaded when writes succeed again.
func TestNoRoomAtOpen(t *testing.T) {
	for writesLeft := range int64(60) {
		files, want := diskImage(t, false)
		fs := newFailing(files)
		why := []error{syscall.ENOSPC, syscall.EROFS, errors.New("a device that fails")}[writesLeft%3]
		store := New("/state", Options{fs: fs, retryPause: time.Millisecond})
		fs.writesLeft.Store(writesLeft)
		fs.failure.Store(&why)
		failed := make(chan error, 1)
		go func() { // ends when the write fails
			_, err := store.Open(context.Background(), "widgets")
			failed <- err
		}()
		select {
		case err := <-failed:
			if err != nil && !errors.Is(err, why) {
				t.Fatalf("after %d writes, Open() = %v, want the disk's error", writesLeft, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("timed out waiting for Open after %d writes on a full disk", writesLeft)
		}
		fs.failure.Store(nil)
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			content, err := store.Open(context.Background(), "widgets")
			if errors.Is(err, ErrContentInUse) { // the first Open succeeded
				_ = store.Close()
				content, err = newStore(t, files).Open(context.Background(), "widgets")
			}
			if err != nil && time.Now().Before(end) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			expect(t, content, "2", want)
			break
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDiskHangsAtOpen verifies that Open and Close return in time although the disk is blocked. The folder is
// unlocked when the disk answers.
func TestDiskHangsAtOpen(t *testing.T) {
	files, want := diskImage(t, false)
	fs := newFailing(files)
	store := New("/state", Options{fs: fs, timeout: 20 * time.Millisecond})
	fs.hang.Store(true)
	done := make(chan struct{})
	go func() { // ends with the Store's timeout
		defer close(done)
		for range 2 {
			if _, err := store.Open(context.Background(), "widgets"); !errors.Is(err, errNoAnswer) ||
				!strings.Contains(err.Error(), "/state") {
				t.Errorf("Open() = %v, want errNoAnswer with the path", err)
			}
		}
		if err := store.Close(); !errors.Is(err, ErrBusy) {
			t.Errorf("Close() = %v, want ErrBusy", err)
		}
		if _, err := store.Open(context.Background(), "widgets"); !errors.Is(err, ErrClosed) {
			t.Errorf("Open() after Close = %v, want ErrClosed", err)
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("timed out waiting for Open or Close")
	}
	fs.hang.Store(false)
	close(fs.release)
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		next := New("/state", Options{fs: fs})
		content, err := next.Open(context.Background(), "widgets")
		if err == nil {
			version, texts, err := load(content)
			if err != nil || version != "2" || !slices.Equal(texts, want) {
				t.Errorf("loaded version %q with %d objects, %v, want version 2 with %d", version, len(texts),
					err, len(want))
			}
			_ = next.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// removableFS is a file system with folders that another process can lock.
type removableFS struct {
	vfs.FS
	isTaken atomic.Bool
}

func (f *removableFS) Lock(name string) (io.Closer, error) {
	if f.isTaken.Load() {
		return nil, ErrInUse
	}
	return f.FS.Lock(name)
}

// TestRemovedFolder verifies that after another process has replaced the folder of a Store, saves fail, and
// that the Store does not use the new folder before the other process has ended.
func TestRemovedFolder(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		mem := vfs.NewMem()
		fs := &removableFS{FS: mem}
		store := New("/state", Options{fs: fs, retryPause: time.Millisecond})
		content := openContent(t, store, "widgets")
		save(t, content, 1, numbered(5, 1))
		if err := mem.Rename("/state", "/removed"); err != nil {
			t.Fatal(err)
		}
		if replaced {
			other := &lockedFolder{fs: mem, ownerPath: "/state/owner", ownerText: "another process"}
			if err := errors.Join(mem.MkdirAll("/state", 0o700), other.writeOwner()); err != nil {
				t.Fatal(err)
			}
			fs.isTaken.Store(true)
		}
		if err := saveChanges(content, 3, numbered(5, 1), numbered(6, 3)); !errors.Is(err, errFolderRemoved) {
			t.Errorf("saveChanges() in a removed folder = %v, want errFolderRemoved", err)
		}
		for end := time.Now().Add(time.Minute); replaced; time.Sleep(time.Millisecond) {
			if err := saveAll(content, 4, numbered(5, 4)); errors.Is(err, ErrInUse) {
				break
			} else if err == nil || time.Now().After(end) {
				t.Fatalf("Open() while another process uses the folder = %v", err)
			}
		}
		fs.isTaken.Store(false)
		expectRecovery(t, content)
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		expect(t, openContent(t, newStore(t, mem), "widgets"), "20", numbered(30, 20).texts())
	}
}
