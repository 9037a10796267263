package dynamicinformer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/store"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var adaptive = Storage{Mode: StorageAdaptive, Compression: s2.New()}

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
	must(t, f.WaitForSync(ctx))
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
			must(t, err)
			defer func() {
				if err := f.Shutdown(longContext(t)); err != nil {
					t.Error(err)
				}
				server.CloseClientConnections()
			}()
			gvr := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
			i := mustInformer(t, f, gvr)
			must(t, f.Start(longContext(t)))
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

// newStoredInformer returns an informer that does not run. It has the objects, and an index "a" with all of
// them.
func newStoredInformer(t testing.TB, storage Storage, objects ...*unstructured.Unstructured) *Informer {
	t.Helper()
	i, err := newInformer(factoryDependencies{dictionaries: &store.Dictionaries{}}, widgets,
		ResourceOptions{Storage: storage, Indexes: indexNames("a")}, nil)
	must(t, err)
	for _, o := range objects {
		must(t, i.GetIndexer().Add(o))
	}
	return i
}

// TestSnapshotJSON verifies that JSON is read without decoding, in every mode.
func TestSnapshotJSON(t *testing.T) {
	x, y := widgetWithColor("web", "x", "red"), widgetWithColor("web", "y", "blue")
	for _, storage := range wholeObjectModes {
		t.Run(storage.Mode.String(), func(t *testing.T) {
			i := newStoredInformer(t, storage, x, y)
			s := i.Snapshot()
			parsed := func(text []byte) any {
				var o any
				if err := json.Unmarshal(text, &o); err != nil {
					t.Errorf("the JSON %s is invalid: %v", text, err)
				}
				return o
			}
			all := map[string]any{}
			err := s.AllJSON(func(key string, text []byte) error {
				all[key] = parsed(text)
				return nil
			})
			if diff := cmp.Diff(map[string]any{"web/x": x.Object, "web/y": y.Object}, all); err != nil ||
				diff != "" {
				t.Errorf("AllJSON() = %v (-want +got):\n%s", err, diff)
			}
			calls, enough := 0, errors.New("enough")
			err = s.AllJSON(func(string, []byte) error {
				calls++
				return enough
			})
			if err != enough || calls != 1 {
				t.Errorf("AllJSON() = %[2]v after %[1]d calls, want the callback's error after 1", calls, err)
			}
			if stats := i.Stats(); stats.Misses != 0 {
				t.Errorf("%d objects were decoded, want 0", stats.Misses)
			}
		})
	}
}

// TestSnapshotIndex verifies that later writes do not change the index of a snapshot.
func TestSnapshotIndex(t *testing.T) {
	i := newStoredInformer(t, Storage{}, widgetWithColor("web", "x", "red"), widgetWithColor("db", "y", "red"))
	s := i.Snapshot()
	must(t, i.GetIndexer().Replace(nil, "9"))
	x, ok := s.Index("namespace")
	if !ok || x.Len() != 2 || x.Count("web") != 1 || !x.Has("web", "web/x") || x.Has("web", "db/y") {
		t.Errorf("Index() = %v with %d values, %d in web; want true, 2, 1", ok, x.Len(), x.Count("web"))
	}
	var keys, values []string
	for key, object := range x.Objects("db") {
		if _, ok := object.(PackedObject); !ok {
			t.Errorf("%s is a %T, want a PackedObject", key, object)
		}
		keys = append(keys, key)
	}
	for value := range x.Range("", "", true) {
		values = append(values, value)
	}
	if !slices.Equal(keys, []string{"db/y"}) || !slices.Equal(values, []string{"web", "db"}) {
		t.Errorf("keys = %v, values = %v, want db/y; web and db", keys, values)
	}
	if _, ordered := x.CountRange("", ""); ordered {
		t.Error("CountRange() of an unordered index succeeded, want false")
	}
	if _, ok := s.Index("none"); ok {
		t.Error("Index() of an unknown name = true, want false")
	}
}

// TestSnapshot verifies that later writes do not change a snapshot.
func TestSnapshot(t *testing.T) {
	for _, mode := range []StorageMode{StoragePacked, StorageObject} {
		t.Run(mode.String(), func(t *testing.T) {
			i := newStoredInformer(t, Storage{Mode: mode}, widget("ns", "x"), widget("ns", "y"))
			s := i.Snapshot()
			must(t, i.GetIndexer().Replace([]any{widget("ns", "z")}, "9"))
			i.RemoveIndexes("a")

			if s.Len() != 2 || s.ResourceVersion() == "9" {
				t.Errorf("%d objects at version %s, want the 2 earlier ones", s.Len(), s.ResourceVersion())
			}
			keys := s.Keys()
			slices.Sort(keys)
			byIndex, err := s.KeysByIndex("a", "a")
			want := []string{"ns/x", "ns/y"}
			if diff := cmp.Diff(want, keys) + cmp.Diff(want, byIndex) +
				cmp.Diff(want, slices.Sorted(maps.Keys(maps.Collect(s.All())))); diff != "" || err != nil {
				t.Errorf("%v, keys (-want +got):\n%s", err, diff)
			}
			if diff := cmp.Diff([]string{cache.NamespaceIndex, "a"}, s.IndexNames()); diff != "" {
				t.Errorf("indexes (-want +got):\n%s", diff)
			}
			if got, ok := s.Get("ns/x"); !ok || !cmp.Equal(any(got), any(widget("ns", "x"))) {
				t.Errorf("Get(ns/x) = %v, want the earlier object", got)
			}
			if got, ok := s.Get("ns/z"); ok || got != nil {
				t.Errorf("the snapshot has a later object: %v", got)
			}
		})
	}
}
