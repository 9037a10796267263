package dynamicinformer

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var adaptive = Storage{Mode: StorageAdaptive, Compression: s2.New(s2.Options{})}

// manyWidgets creates enough objects to train a compressor.
func manyWidgets(t testing.TB, server *apitest.Server) (count int) {
	t.Helper()
	const widgetsToLearnFrom = 250
	for n := range widgetsToLearnFrom {
		u := widgetWithColor("web", fmt.Sprint("w", n), "red")
		u.Object["status"] = map[string]any{"message": strings.Repeat("the same in all widgets; ", 20)}
		server.Create(t, widgets, u)
	}
	return widgetsToLearnFrom
}

// TestAdaptiveStorage verifies that the compression of a cache with readers, a handler and indexes changes
// only the statistics.
func TestAdaptiveStorage(t *testing.T) {
	server := newServer(t)
	count := manyWidgets(t, server)
	i := started(t, Options{Config: server.Config()}, ResourceOptions{Storage: adaptive})
	seen := &eventNotes{}
	registration, err := i.AddEventHandler(seen)
	must(t, err)
	if !cache.WaitForCacheSync(longContext(t).Done(), registration.HasSynced) || len(seen.take()) != count {
		t.Fatal("the handler did not receive all objects")
	}
	held, err := i.Lister().ByNamespace("web").Get("w7")
	must(t, err)
	before := i.Stats()
	if before.Storage != StorageAdaptive.String() || before.Compressed != 0 || before.CompressedBytes != 0 {
		t.Errorf("Stats before compression = %+v, want no compressed objects", before)
	}
	old := i.Snapshot()
	must(t, i.Compress(t.Context()))
	after := i.Stats()
	if after.Compressed != count || after.CompressedBytes != after.ObjectBytes ||
		after.ObjectBytes > before.ObjectBytes/2 {
		t.Errorf("Stats after compression = %+v, want all objects compressed to half of %+v", after, before)
	}
	if again, err := i.Lister().ByNamespace("web").Get("w7"); err != nil || again != held {
		t.Errorf("the decoded copy was replaced (%v)", err)
	}
	for name, s := range map[string]*Snapshot{"old": old, "new": i.Snapshot()} {
		stored, _ := s.Stored("web/w8")
		u := stored.(PackedObject).Unstructured()
		if color, _, _ := unstructured.NestedString(u.Object, "spec", "color"); color != "red" {
			t.Errorf("the %s snapshot has %v, want the color red", name, u)
		}
	}
	if lines := seen.take(); len(lines) != 0 {
		t.Errorf("a handler received events of the compression: %v", lines)
	}
	if m := i.core.Events(); m.Updates != 0 {
		t.Errorf("%d updates were counted, want 0", m.Updates)
	}
}

// TestMemoryBudget verifies the statistics of two informers that exceed the memory budget, only one of which
// can be compressed.
func TestMemoryBudget(t *testing.T) {
	server := newServer(t)
	count := manyWidgets(t, server)
	f, err := New(Options{Config: server.Config(), MemoryBudget: 1})
	must(t, err)
	ctx := longContext(t)
	defer func() { must(t, f.Shutdown(ctx)) }()
	must(t, f.Start(ctx))
	small, err := f.Acquire(widgets, ResourceOptions{Storage: adaptive})
	must(t, err)
	large, err := f.Acquire(widgets, ResourceOptions{Storage: Storage{Mode: StoragePacked}})
	must(t, err)
	if err := f.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	must(t, small.Informer().Compress(ctx))
	if s := small.Informer().Stats(); s.Compressed != count {
		t.Errorf("Stats() of the adaptive informer = %+v, want all objects compressed", s)
	}
	if s := large.Informer().Stats(); s.Compressed != 0 {
		t.Errorf("Stats() of the packed informer = %+v, want no compressed objects", s)
	}
	m := f.MemoryStats()
	if m.Budget != 1 || m.Used <= 1 || m.OverBudget != m.Used-1 || m.Compressible != 0 || m.Compressed == 0 {
		t.Errorf("MemoryStats() = %+v, want more memory than the budget", m)
	}
	var all int64
	for _, some := range f.Metrics() {
		all += some.ObjectBytes + some.TableBytes + some.IndexBytes
	}
	if all != m.Used {
		t.Errorf("the informers use %d bytes in total, MemoryStats reports %d", all, m.Used)
	}
	small.Release()
	large.Release()
}

// TestMetadataWithoutWatchList verifies that list and watch fill a cache of metadata. Like API servers, the
// server rejects a list request with the media type of a single object.
func TestMetadataWithoutWatchList(t *testing.T) {
	for name, refuses := range map[string]bool{"given": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			objects := apitest.New(t, apitest.ConfigMaps).Server.Config.Handler
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				query, accept := r.URL.Query(), r.Header.Get("Accept")
				list := r.Method == http.MethodGet && !query.Has("watch")
				switch {
				case query.Has("sendInitialEvents"):
					http.Error(w,
						"sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled", http.StatusUnprocessableEntity)
				case list && strings.Contains(accept, "as=PartialObjectMetadata;"), refuses &&
					strings.Contains(accept, "as="):
					http.Error(w, "you requested PartialObjectMetadata", http.StatusNotAcceptable)
				default:
					objects.ServeHTTP(w, r)
				}
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL, QPS: -1}
			f, err := New(Options{Config: config,
				Defaults: ResourceOptions{Storage: Storage{Mode: StorageMetadata}}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := f.Shutdown(longContext(t)); err != nil {
					t.Error(err)
				}
				server.CloseClientConnections()
			}()
			gvr := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
			i := mustInformer(t, f, gvr)
			if err := f.Start(longContext(t)); err != nil {
				t.Fatal(err)
			}
			if err := f.WaitForSync(longContext(t)); err != nil {
				t.Error(err)
			}
			if s := i.Status(); s.State != status.Synced || s.ListDuration <= 0 ||
				i.Stats().ListDuration != s.ListDuration {
				t.Errorf("Status() = %+v, the statistics are %+v, want Synced", s, i.Stats())
			}
		})
	}
}
