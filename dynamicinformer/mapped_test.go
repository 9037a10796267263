package dynamicinformer

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mapped moves objects to files without training a compressor, so that few objects suffice.
var mapped = Storage{Mode: StorageMapped}

// TestMappedFigures verifies that Stats, Metrics and MemoryStats agree about the bytes in files.
func TestMappedFigures(t *testing.T) {
	server := newServer(t)
	count := manyWidgets(t, server)
	f := newFactory(t, server, Options{Defaults: ResourceOptions{Storage: mapped}})
	i := startSynced(t, f)
	must(t, i.Compress(longContext(t)))
	s, m, total := i.Stats(), f.Metrics()[0], f.MemoryStats()
	if s.Storage != "mapped" || s.Compressed != count || s.MappedBytes < int64(count)*500 ||
		s.MappedBytes >= s.ObjectBytes || s.FileBytes < s.MappedBytes {
		t.Errorf("Stats() = %+v, want the bytes of %d objects in files", s, count)
	}
	if m.MappedBytes != s.MappedBytes || total.Mapped != s.MappedBytes || total.Used != s.Bytes() {
		t.Errorf("Metrics() = %+v, MemoryStats() = %+v, want the bytes of %+v", m, total, s)
	}
}

// TestMappedFullDisk removes the folder of the files. The status shows that objects stay on the heap.
func TestMappedFullDisk(t *testing.T) {
	server := newServer(t)
	server.Create(t, widgets, widgetWithColor("web", "a", "red"))
	folder := filepath.Join(t.TempDir(), "files")
	must(t, os.Mkdir(folder, 0o700))
	f := newFactory(t, server, Options{Defaults: ResourceOptions{
		Storage: Storage{Mode: StorageMapped, Directory: folder}}})
	must(t, os.Remove(folder))
	i := startSynced(t, f)
	must(t, i.Compress(longContext(t)))
	s := i.Status()
	if !errors.Is(s.StorageErr, os.ErrNotExist) || !strings.Contains(s.String(), "objects stay on the heap: ") {
		t.Errorf("the status is %v, want an error of the storage", s)
	}
	if obj, err := i.Lister().ByNamespace("web").Get("a"); err != nil || obj == nil {
		t.Errorf("Get() = %v, %v, want the object", obj, err)
	}
}

// TestMappedRestart verifies that restored objects move to files.
func TestMappedRestart(t *testing.T) {
	server, s := newServer(t), newMemoryBackend()
	count := manyWidgets(t, server)
	options := ResourceOptions{Storage: mapped}
	persistWidgets(t, server, s, options)
	r := resume(t, server, s, options)
	if !r.Persistence().Resumed {
		t.Fatal("the informer did not resume")
	}
	await(t, func() bool {
		must(t, r.Compress(longContext(t)))
		got := r.core.Store().Stats()
		return got.Mapped == count
	})
}

// TestSecretsAreNotInFiles verifies that Secrets stay in memory.
func TestSecretsAreNotInFiles(t *testing.T) {
	f := newFactory(t, newServer(t), Options{Defaults: ResourceOptions{Storage: mapped}})
	for resource, want := range map[string]bool{"secrets": false, "configmaps": true} {
		i := mustInformer(t, f, schema.GroupVersionResource{Version: "v1", Resource: resource})
		if got := i.core.Store().Adaptive() != nil; got != want {
			t.Errorf("%s are stored in files: %v, want %v", resource, got, want)
		}
	}
}
