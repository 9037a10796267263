package disk

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var errKilled = errors.New("killed")

// nightly is true in make nightly, which tries every failure.
var nightly = os.Getenv("CRDCACHE_NIGHTLY") != ""

// TestLives runs a thousand processes on one folder. Each saves a random history and is killed at a random
// step; some lose power. The next one must load the last saved content, or the one that was being saved.
func TestLives(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	dir := filepath.Join(t.TempDir(), "state")
	disk := newDisk()
	states := []objectTexts{nil}
	saved := 0 // number of the last state whose save succeeded
	lives := 200
	if nightly {
		lives = 1000
	}
	for range lives {
		s := New(dir, Options{disk: disk.do})
		disk.setLeft(-1, nil)
		content := openContent(t, s, "widgets")
		version, texts, err := load(content)
		must(t, err)
		number, _ := strconv.Atoi(version)
		if number < saved || number >= len(states) || !slices.Equal(texts, states[number].texts()) {
			t.Fatalf("loaded state %d with %d objects, want the saved state %d or a later one", number, len(texts),
				saved)
		}
		states = states[:number+1] // an unfinished save may be complete, but not be synced
		disk.setLeft(random.IntN(25), errKilled)
		for whole := number == 0; ; whole = random.IntN(4) == 0 {
			next := numbered(random.IntN(60), len(states))
			if !whole {
				next = objectTexts{}
				maps.Copy(next, states[len(states)-1])
				maps.Copy(next, numbered(random.IntN(10), len(states)))
				delete(next, "ns/object-0000")
			}
			states = append(states, next)
			if whole {
				err = saveAll(content, len(states)-1, next)
			} else {
				err = saveChanges(content, len(states)-1, states[len(states)-2], next)
			}
			if err != nil {
				break
			}
			saved = len(states) - 1
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		closeStore(t, s) // only unlocks the folder
		if random.IntN(2) == 0 {
			disk.losePower(t, dir, random)
		}
	}
}

// TestDamage flips bits, truncates, and exchanges parts of files, of a plain and of an encrypted content.
// Loading must return a saved content, nothing, or an error with the path; the next save must succeed.
func TestDamage(t *testing.T) {
	before, after := numbered(30, 1), numbered(29, 2)
	for name, keys := range map[string][][]byte{"plain": nil, "encrypted": {key(1)}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			store := newStore(t, dir, Options{Keys: keys})
			content := openContent(t, store, "widgets")
			save(t, content, 1, before)
			must(t, saveChanges(content, 2, before, after))
			whole := read(t, content.path)
			notice := func(reason string, text []byte) {
				t.Helper()
				write(t, content.path, text)
				version, texts, err := load(content)
				switch {
				case err != nil && strings.Contains(err.Error(), content.path): // the damage was detected
				case err == nil && version == "1" && slices.Equal(texts, before.texts()): // the end was cut
				default:
					t.Fatalf("%s: loaded version %q with %d objects, %v", reason, version, len(texts), err)
				}
			}
			for k := 0; k < len(whole); k += 1 + len(whole)/400 {
				flipped := slices.Clone(whole)
				flipped[k] ^= 1 << (k % 8)
				notice("a flipped bit at "+strconv.Itoa(k), flipped)
				notice("truncated to "+strconv.Itoa(k), whole[:k])
			}
			random := rand.New(rand.NewPCG(1, 2))
			for range 400 {
				swapped := slices.Clone(whole)
				size := 1 + random.IntN(200)
				a, b := random.IntN(len(whole)-size), random.IntN(len(whole)-size)
				copy(swapped[a:a+size], whole[b:b+size])
				if !slices.Equal(swapped, whole) {
					notice("moved bytes", swapped)
				}
			}
			save(t, content, 3, numbered(20, 3))
			expect(t, content, "3", numbered(20, 3).texts())
		})
	}
}

// TestExchangedFiles verifies that a file under the name of another is not loaded.
func TestExchangedFiles(t *testing.T) {
	store := newStore(t, t.TempDir(), Options{})
	a, b := openContent(t, store, "widgets"), openContent(t, store, "gadgets")
	save(t, a, 1, numbered(3, 1))
	save(t, b, 2, numbered(3, 2))
	write(t, a.path, read(t, b.path))
	if _, _, err := load(a); err == nil || !strings.Contains(err.Error(), "gadgets") {
		t.Errorf("loading a file of another view: %v, want its view", err)
	}
}

// TestFullDisk makes every operation fail after some operations. Saving must return the error. When there is
// space again, it must succeed; and the folder has the files of the last save only.
func TestFullDisk(t *testing.T) {
	step := 4
	if nightly {
		step = 1
	}
	for left := 0; left < 40; left += step {
		disk, dir := newDisk(), t.TempDir()
		store := newStore(t, dir, Options{disk: disk.do})
		content := openContent(t, store, "widgets")
		save(t, content, 1, numbered(50, 1))
		failure := []error{syscall.ENOSPC, syscall.EROFS, errors.New("a device that fails")}[left%3]
		disk.setLeft(left, failure)
		var err error
		for version := 2; version < 30 && err == nil; version++ {
			if version%2 == 0 {
				err = saveAll(content, version, numbered(50, version))
			} else {
				err = saveChanges(content, version, numbered(50, version-1), numbered(50, version))
			}
		}
		if !errors.Is(err, failure) {
			t.Fatalf("after %d operations, saving returned %v, want %v", left, err, failure)
		}
		disk.setLeft(-1, nil)
		if err := saveChanges(content, 40, nil, nil); !errors.Is(err, errNoContent) {
			t.Errorf("saving changes after a failure: %v, want errNoContent", err)
		}
		save(t, content, 20, numbered(30, 20))
		closeStore(t, store)
		expect(t, openContent(t, newStore(t, dir, Options{}), "widgets"), "20", numbered(30, 20).texts())
		if files := listFiles(t, dir); len(files) != 2 {
			t.Errorf("the folder has %v, want a lock and a log", files)
		}
	}
}

// TestHangingDisk verifies that no call waits longer than its context for a blocked disk, and that the folder
// stays locked until the disk answers.
func TestHangingDisk(t *testing.T) {
	disk, dir := newDisk(), t.TempDir()
	store := newStore(t, dir, Options{disk: disk.do})
	content := openContent(t, store, "widgets")
	save(t, content, 1, numbered(5, 1))
	release := make(chan struct{})
	disk.mu.Lock()
	disk.hang = release
	disk.mu.Unlock()
	saved := make(chan error)
	go func() { saved <- saveAll(content, 2, numbered(5, 2)) }() // ends with release
	<-disk.hanging
	if _, err := store.Open(t.Context(), viewOf("gadgets")); err != nil {
		t.Errorf("Open() of another content while a save hangs: %v", err)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("no patience")
	cancel(cause)
	if err := store.Close(ended); !errors.Is(err, ErrBusy) || !errors.Is(err, cause) {
		t.Errorf("Close() = %v, want ErrBusy and the cause", err)
	}
	if _, err := store.Open(t.Context(), viewOf("widgets")); !errors.Is(err, ErrClosed) {
		t.Errorf("Open() after Close = %v, want ErrClosed", err)
	}
	if _, err := newStore(t, dir, Options{}).Open(t.Context(), viewOf("widgets")); !errors.Is(err, ErrInUse) {
		t.Errorf("Open() of another Store = %v, want ErrInUse while the disk hangs", err)
	}
	close(release)
	if err := <-saved; err != nil {
		t.Error(err)
	}
	next := newStore(t, dir, Options{})
	for {
		content, err := next.Open(t.Context(), viewOf("widgets"))
		if err == nil {
			expect(t, content.(*storedContent), "2", numbered(5, 2).texts())
			return
		}
		if !errors.Is(err, ErrInUse) {
			t.Fatal(err)
		}
	}
}

// TestHangingOpen verifies that callers stop waiting for a folder that is being opened when their context
// ends.
func TestHangingOpen(t *testing.T) {
	disk := newDisk()
	disk.hang = make(chan struct{})
	store := newStore(t, t.TempDir(), Options{disk: disk.do})
	opened := make(chan error)
	go func() { // ends with hang
		_, err := store.Open(t.Context(), viewOf("widgets"))
		opened <- err
	}()
	for len(store.folderToken) == 0 {
		runtime.Gosched()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := store.Open(ctx, viewOf("gadgets")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Open() = %v, want the end of its context", err)
	}
	close(disk.hang)
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// TestRemovedFolder verifies that after the folder was removed or replaced by another process, saves fail
// once, and that the Store does not use the new folder before the other process has ended.
func TestRemovedFolder(t *testing.T) {
	for _, isReplaced := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "state")
		store := newStore(t, dir, Options{})
		content := openContent(t, store, "widgets")
		save(t, content, 1, numbered(5, 1))
		must(t, os.RemoveAll(dir))
		other := newStore(t, dir, Options{})
		if isReplaced {
			save(t, openContent(t, other, "widgets"), 7, numbered(4, 7))
		}
		if err := saveChanges(content, 3, numbered(5, 1), numbered(6, 3)); !errors.Is(err, errFolderRemoved) {
			t.Errorf("saving changes in a removed folder: %v, want errFolderRemoved", err)
		}
		if err := saveAll(content, 4, numbered(5, 4)); isReplaced != errors.Is(err, ErrInUse) {
			t.Errorf("saving in a folder of another process (%v): %v", isReplaced, err)
		}
		closeStore(t, other)
		save(t, content, 20, numbered(30, 20))
		closeStore(t, store)
		expect(t, openContent(t, newStore(t, dir, Options{}), "widgets"), "20", numbered(30, 20).texts())
	}
}

// TestReplacedFile verifies that changes are not appended to another file.
func TestReplacedFile(t *testing.T) {
	store := newStore(t, t.TempDir(), Options{})
	content := openContent(t, store, "widgets")
	save(t, content, 1, numbered(5, 1))
	text := read(t, content.path)
	write(t, content.path+".other", text)
	must(t, os.Rename(content.path+".other", content.path))
	if err := saveChanges(content, 2, numbered(5, 1), numbered(6, 2)); err == nil {
		t.Error("changes were appended to a file of the same content, want an error")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
