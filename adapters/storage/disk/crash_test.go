package disk

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/crdcache/crdcache/dynamicinformer/persistence"
)

// TestPowerLoss saves a random history on a file system that loses unsynced data at a random time. The next
// process must load the last saved content, or the one that was being saved.
func TestPowerLoss(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 12 {
		fs := vfs.NewCrashableMem()
		s := newStore(t, fs)
		content := openContent(t, s, "widgets")
		states := []objectTexts{nil}
		var saved atomic.Int64 // number of the last saved state
		crashed := make(chan *vfs.MemFS)
		after := random.IntN(4000)
		percent := []int{0, 30, 70, 100}[random.IntN(4)]
		chance := rand.New(rand.NewPCG(random.Uint64(), 1))
		// This goroutine ends with the crash.
		lastSaved := make(chan int64, 1)
		go func() {
			for range after {
				saved.Load()
			}
			lastSaved <- saved.Load()
			crashed <- fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: chance})
		}()
		var disk *vfs.MemFS
		for disk == nil {
			nextState := numbered(random.IntN(60), len(states))
			if len(states) > 1 && random.IntN(4) > 0 {
				nextState = maps.Clone(states[len(states)-1])
				if nextState == nil {
					nextState = objectTexts{}
				}
				for k, text := range numbered(random.IntN(10), len(states)) {
					nextState[k] = text
				}
				states = append(states, nextState)
				if err := saveChanges(content, len(states)-1, states[len(states)-2], nextState); err != nil {
					t.Fatal(err)
				}
			} else {
				states = append(states, nextState)
				save(t, content, len(states)-1, nextState)
			}
			saved.Store(int64(len(states) - 1))
			select {
			case disk = <-crashed:
			default:
			}
		}
		version, texts, err := load(openContent(t, newStore(t, disk), "widgets"))
		if err != nil {
			t.Fatal(err)
		}
		number := 0
		if version != "" {
			number, _ = strconv.Atoi(version)
		}
		if int64(number) < <-lastSaved || number >= len(states) || !slices.Equal(texts,
			states[number].texts()) {
			t.Fatalf("loaded state %d with %d objects, want a state that was saved completely", number,
				len(texts))
		}
	}
}

// diskImage returns the file system of a process that was closed or killed.
func diskImage(t *testing.T, closed bool) (*vfs.MemFS, []string) {
	t.Helper()
	fs := vfs.NewCrashableMem()
	s := newStore(t, fs)
	content := openContent(t, s, "widgets")
	before, after := numbered(300, 1), numbered(299, 1)
	save(t, content, 1, before)
	if err := saveChanges(content, 2, before, after); err != nil {
		t.Fatal(err)
	}
	if closed {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return fs.CrashClone(vfs.CrashCloneCfg{}), after.texts()
}

// TestDamage flips bits and truncates files at offsets in every part of every file. Loading must return a
// saved content or nothing, and the next save must succeed.
func TestDamage(t *testing.T) {
	for _, closed := range []bool{false, true} {
		whole, want := diskImage(t, closed)
		earlier := numbered(300, 1).texts()
		for _, path := range listFiles(t, whole, "/state") {
			info, err := whole.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			for offset := int64(0); offset < info.Size(); offset += 1 + info.Size()/12 {
				for name, damage := range damages {
					fs := whole.CrashClone(vfs.CrashCloneCfg{})
					damage(t, fs, path, offset)
					store := newStore(t, fs)
					content, err := store.Open(context.Background(), "widgets")
					if err != nil {
						t.Fatalf("%s at %d of %s: %v", name, offset, path, err)
					}
					version, texts, err := load(content)
					switch {
					case err != nil: // the damage was detected
					case version == "" && texts == nil, version == "1" &&
						slices.Equal(texts, earlier), version == "2" && slices.Equal(texts, want):
					default:
						t.Fatalf("%s at %d of %s: loaded version %q with %d objects, which was never saved",
							name, offset, path,
							version, len(texts))
					}
					save(t, content, 3, numbered(20, 3))
					expect(t, content, "3", numbered(20, 3).texts())
					_ = store.Close()
				}
			}
		}
	}
}

var damages = map[string]func(t *testing.T, fs *vfs.MemFS, path string, offset int64){
	"a flipped bit": func(t *testing.T, fs *vfs.MemFS, path string, offset int64) {
		data := read(t, fs, path)
		data[offset] ^= 1 << (offset % 8)
		write(t, fs, path, data)
	},
	"the end": func(t *testing.T, fs *vfs.MemFS, path string, offset int64) {
		write(t, fs, path, read(t, fs, path)[:offset])
	},
	"zeros": func(t *testing.T, fs *vfs.MemFS, path string, offset int64) {
		data := read(t, fs, path)
		clear(data[offset:min(int(offset)+512, len(data))])
		write(t, fs, path, data)
	},
}

func read(t *testing.T, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return data
}

func write(t *testing.T, fs vfs.FS, path string, data []byte) {
	t.Helper()
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestFullDisk makes every write fail after some writes. Saving must return an error. When there is space
// again, it must succeed.
func TestFullDisk(t *testing.T) {
	for writesLeft := range int64(40) {
		mem := vfs.NewMem()
		var full atomic.Bool
		var writes atomic.Int64
		fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && full.Load() && writes.Add(1) > writesLeft {
				return syscall.ENOSPC
			}
			return nil
		}))
		store := New("/state", Options{fs: fs, retryPause: time.Nanosecond})
		content := openContent(t, store, "widgets")
		save(t, content, 1, numbered(50, 1))
		full.Store(true)
		failed := false
		for version := 2; version < 12 && !failed; version++ {
			if version%2 == 0 {
				failed = saveAll(content, version, numbered(50, version)) != nil
			} else {
				failed = saveChanges(content, version, numbered(50, version-1), numbered(50, version)) != nil
			}
		}
		if !failed {
			t.Logf("%d writes were enough for all", writesLeft)
		}
		full.Store(false)
		expectRecovery(t, content)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		expect(t, openContent(t, newStore(t, mem), "widgets"), "20", numbered(30, 20).texts())
	}
}

// expectRecovery saves until the Store tries the disk again.
func expectRecovery(t *testing.T, content persistence.StoredContent) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		err := saveAll(content, 20, numbered(30, 20))
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// hangingFS is a file system with syncs that can block.
type hangingFS struct {
	vfs.FS
	isHanging *atomic.Bool
	waiting   chan struct{}
	release   chan struct{}
}

func (h hangingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := h.FS.Create(name, category)
	return hangingFile{f, h}, err
}

type hangingFile struct {
	vfs.File
	fs hangingFS
}

func (f hangingFile) hang() {
	if f.fs.isHanging.Load() {
		f.fs.waiting <- struct{}{}
		<-f.fs.release
	}
}

func (f hangingFile) Sync() error {
	f.hang()
	return f.File.Sync()
}

func (f hangingFile) SyncData() error {
	f.hang()
	return f.File.SyncData()
}

// TestHangingDisk verifies that Close does not wait for a blocked disk, and keeps the folder locked.
func TestHangingDisk(t *testing.T) {
	mem := vfs.NewMem()
	fs := hangingFS{mem, &atomic.Bool{}, make(chan struct{}, 100), make(chan struct{})}
	s := New("/state", Options{fs: fs})
	content := openContent(t, s, "widgets")
	save(t, content, 1, numbered(5, 1))
	s.options.timeout = time.Nanosecond
	fs.isHanging.Store(true)
	saved := make(chan error)
	go func() { saved <- saveAll(content, 2, numbered(5, 2)) }() // ends with free
	<-fs.waiting
	if err := s.Close(); !errors.Is(err, ErrBusy) {
		t.Errorf("Close() = %v, want ErrBusy", err)
	}
	if _, err := newStore(t, mem).Open(context.Background(), "widgets"); err == nil {
		t.Error("Open() of another Store succeeded while the folder is locked")
	}
	fs.isHanging.Store(false)
	close(fs.release)
	if err := <-saved; err != nil {
		t.Error(err)
	}
}

// TestNearlyFullDisk verifies that nothing is saved if the free space is low.
func TestNearlyFullDisk(t *testing.T) {
	s := newStore(t, smallFS{vfs.NewMem()})
	content := openContent(t, s, "widgets")
	if err := saveAll(content, 1, numbered(5, 1)); !errors.Is(err, ErrFull) {
		t.Errorf("saveAll() = %v, want ErrFull", err)
	}
}

type smallFS struct{ vfs.FS }

func (smallFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: minFreeSpace - 1}, nil
}
