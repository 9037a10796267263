package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crdcache/crdcache/internal/packed"
)

func mappedStore(t *testing.T, trainer packed.Trainer) (s *Store, folder string) {
	t.Helper()
	folder = t.TempDir()
	return New(Options{Format: NewMapped(nil, trainer, folder)}), folder
}

// expectCertificates fails unless the store has the given version of each object.
func expectCertificates(t *testing.T, s *Store, objects int, version func(n int) int) {
	t.Helper()
	for n := range objects {
		item, found := s.Snapshot().Get(fmt.Sprintf("tenant-%d/certificate-%d", n%100, n))
		if !found {
			t.Fatalf("object %d is missing", n)
		}
		if got, err := item.(*packed.Object).AppendJSON(nil); err != nil ||
			string(got) != string(certificate(n, version(n))) {
			t.Fatalf("object %d: %.80q, %v, want version %d", n, got, err, version(n))
		}
	}
	expectExactSizes(t, s.Snapshot())
}

// awaitFiles collects garbage until the files have at most this size.
func awaitFiles(t *testing.T, s *Store, atMost int64) {
	t.Helper()
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	for s.Stats().FileBytes > atMost {
		runtime.GC()
		select {
		case <-timeout.C:
			t.Fatalf("the files have %d bytes, want at most %d", s.Stats().FileBytes, atMost)
		default:
		}
	}
}

// TestMappedStore replaces most objects, one by one and all together, while readers use them, and moves
// them to files. Files that are mostly garbage are rewritten, unused ones are closed, and none has a name.
func TestMappedStore(t *testing.T) {
	for name, trainer := range map[string]packed.Trainer{"JSON": nil, "compressed": prefixCompressor{}} {
		t.Run(name, func(t *testing.T) {
			const objects, rounds = 1000, 12
			s, folder := mappedStore(t, trainer)
			replaceAll(t, s, objects, 0)
			segment := func() *packed.Segment {
				item, _ := s.Snapshot().Get("tenant-0/certificate-0")
				return item.(*packed.Object).Segment()
			}
			sweepAll(s, SweepPeriodic) // some train the compressor
			sweepAll(s, SweepPeriodic)
			first := segment()
			ended := make(chan struct{})
			var readers sync.WaitGroup
			readers.Go(func() { // ended by the channel
				for n := 0; ; n++ {
					select {
					case <-ended:
						return
					default:
					}
					obj, _ := s.Object(fmt.Sprintf("tenant-%d/certificate-%d", n%100, n%objects))
					if obj == nil {
						t.Errorf("object %d is missing", n)
						return
					}
				}
			})
			for round := 1; round <= rounds; round++ {
				for n := range objects {
					if n%5 > 0 {
						s.Put(s.Prepare(keyedCertificate(t, s.format, n, round)))
					}
				}
				sweepAll(s, SweepPeriodic)
				if round == rounds/2 {
					replaceAll(t, s, objects, 0)
				}
			}
			sweepAll(s, SweepPeriodic)
			close(ended)
			readers.Wait()
			expectCertificates(t, s, objects, func(n int) int { return min(n%5, 1) * rounds })
			if first == nil || segment() == first || len(s.sparseSegments()) > 0 {
				t.Error("files that are mostly garbage were not rewritten")
			}
			if m := s.Stats(); m.Mapped != objects || m.Compressed != objects || s.FileErr() != nil ||
				m.MappedBytes <= 0 || m.MappedBytes >= m.ObjectBytes {
				t.Errorf("Stats() = %+v, want all objects in files", m)
			}
			if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
				t.Errorf("the folder has %v, %v, want no files", left, err)
			}
			first = nil
			if _, ok := s.Replace(s.PrepareAll(nil), "9"); !ok || s.needsSweep(s.Stats()) {
				t.Error("an empty store needs a sweep")
			}
			awaitFiles(t, s, 0)
		})
	}
}

// TestFullDisk removes the folder, and breaks a file while a list is being stored. Objects stay in memory,
// and move to files when that is possible again.
func TestFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const objects = 1000
		s, folder := mappedStore(t, prefixCompressor{})
		if err := os.Remove(folder); err != nil {
			t.Fatal(err)
		}
		version := func(int) int { return 1 }
		replaceAll(t, s, objects, 1)
		sweepAll(s, SweepPeriodic) // some train the compressor
		sweepAll(s, SweepPeriodic)
		expectCertificates(t, s, objects, version)
		if m := s.Stats(); m.Mapped != 0 || m.Compressed != objects ||
			!errors.Is(s.FileErr(), os.ErrNotExist) {
			t.Errorf("Stats() = %+v, FileErr() = %v, want compressed objects and an error", m, s.FileErr())
		}

		broken, err := os.Create(filepath.Join(t.TempDir(), "broken"))
		if err != nil {
			t.Fatal(err)
		}
		if err := broken.Close(); err != nil {
			t.Fatal(err)
		}
		s.segments().current.Store(packed.NewSegment(broken, 1<<30))
		sweepAll(s, SweepPeriodic)
		expectCertificates(t, s, objects, version)
		if m := s.Stats(); m.Mapped == 0 || m.Mapped == objects || !errors.Is(s.FileErr(), os.ErrClosed) {
			t.Errorf("Stats() = %+v, FileErr() = %v, want few objects in the broken file", m, s.FileErr())
		}

		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(sweepPeriod)
		sweepAll(s, SweepPeriodic)
		expectCertificates(t, s, objects, version)
		if m := s.Stats(); m.Mapped != objects || s.FileErr() != nil {
			t.Errorf("Stats() = %+v, FileErr() = %v, want all objects in files", m, s.FileErr())
		}
	})
}

// TestCheckFolder verifies the error of a folder that cannot be used.
func TestCheckFolder(t *testing.T) {
	folder := t.TempDir()
	if err := CheckFolder(folder); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(folder); len(left) > 0 {
		t.Errorf("CheckFolder() left the files %v, want none", left)
	}
	err := CheckFolder(filepath.Join(folder, "missing"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("CheckFolder() of a missing folder = %v, want os.ErrNotExist", err)
	}
}
