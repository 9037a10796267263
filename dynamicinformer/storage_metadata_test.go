package dynamicinformer

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestMetadataWithoutWatchList fills a cache of metadata by list and watch. Like API servers, the server
// rejects a list request with the media type of a single object.
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
				t.Errorf("the status is %+v, the statistics are %+v", s, i.Stats())
			}
		})
	}
}
