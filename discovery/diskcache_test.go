package discovery

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// cacheFiles returns the files below dir, relative to it.
func cacheFiles(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDiskCache(t *testing.T) {
	server := newAPIServer(t, sampleGroups()...)
	dir := t.TempDir()
	want, err := server.client(t, Options{CacheDir: dir}).Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server.takeRequests()
	got, err := server.client(t, Options{CacheDir: dir}).Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Resources(), got.Resources()); diff != "" {
		t.Errorf("from disk (-want +got):\n%s", diff)
	}
	if took := server.takeRequests(); len(took) != 0 {
		t.Errorf("a warm disk cache cost %v", took)
	}
	// After the TTL, the ETag on disk is still valid.
	if _, err := server.client(t,
		Options{CacheDir: dir, TTL: time.Nanosecond}).Catalog(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"/api 304", "/apis 304"}, server.takeRequests()); diff != "" {
		t.Errorf("expired (-want +got):\n%s", diff)
	}
}

func TestDiskCacheOfAnotherServer(t *testing.T) {
	dir := t.TempDir()
	one, other := newAPIServer(t, sampleGroups()...), newAPIServer(t, sampleGroups()[:1]...)
	for _, s := range []*apiServer{one, other} {
		if _, err := s.client(t, Options{CacheDir: dir}).Catalog(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	catalog, err := other.client(t, Options{CacheDir: dir}).Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{""}, groupNames(catalog)); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

func TestBadDiskCache(t *testing.T) {
	future := `{"format":1,"server":"SERVER","document":"/apis","started":"2999-01-01T00:00:00Z","content":{"groups":[]}}`
	tests := map[string]string{
		"empty":           "",
		"cut off":         `{"format":1,"server":`,
		"no JSON":         "\x00\xff\x00",
		"another shape":   `[1,2,3]`,
		"no content":      `{"format":1,"server":"SERVER","document":"/apis"}`,
		"another format":  `{"format":99,"server":"SERVER","document":"/apis","content":{"groups":[]}}`,
		"from the future": future,
		"another server":  `{"format":1,"server":"https://elsewhere/","document":"/apis","content":{"groups":[]}}`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			server := newAPIServer(t, sampleGroups()...)
			dir := t.TempDir()
			if _, err := server.client(t, Options{CacheDir: dir}).Catalog(t.Context()); err != nil {
				t.Fatal(err)
			}
			server.takeRequests()
			for _, file := range cacheFiles(t, dir) {
				bad := strings.ReplaceAll(text, "SERVER", server.URL+"/")
				if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := server.client(t, Options{CacheDir: dir}).Resolve(t.Context(),
				"certificates"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"/api 200", "/apis 200"}, server.takeRequests()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			// The file was replaced by a valid one.
			if _, err := server.client(t, Options{CacheDir: dir}).Resolve(t.Context(),
				"certificates"); err != nil {
				t.Fatal(err)
			}
			if took := server.takeRequests(); len(took) != 0 {
				t.Errorf("after repair: %v", took)
			}
		})
	}
}

func TestDiskCacheThatCannotBeWritten(t *testing.T) {
	server := newAPIServer(t, sampleGroups()...)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := server.client(t, Options{CacheDir: file}).Catalog(t.Context()); err != nil {
		t.Errorf("a file where the folder should be: %v", err)
	}
}

func TestConcurrentWriters(t *testing.T) {
	file := newDiskFile(t.TempDir(), "https://example.com:6443/k8s/c-1", "/apis")
	c := &cachedDocument{Groups: sampleGroups()[1:]}
	file.store(snapshot{cachedDocument: c, started: time.Now()})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				file.store(snapshot{cachedDocument: c, started: time.Now()})
				got := file.load(time.Now().Add(time.Minute))
				if got == nil {
					t.Error("a reader saw no whole file")
				} else if diff := cmp.Diff(c, got.cachedDocument); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
	wg.Wait()
	if files := cacheFiles(t, filepath.Dir(file.path)); len(files) != 1 {
		t.Errorf("files left: %v", files)
	}
}
