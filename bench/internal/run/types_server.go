package run

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/crdcache/crdcache/bench/internal/experiment"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/readapi"
)

// bookmarkInterval is the interval of bookmarks on each watch. It is a sixth of a kube-apiserver's, because
// bookmarks are the only work of idle clients.
const bookmarkInterval = 10 * time.Second

// startTypesServer starts an API server with many types, because a kube-apiserver needs minutes to install as
// many definitions. It compresses watch-lists like a kube-apiserver. Stop ends it.
func startTypesServer(types, perType int) (*localServer, error) {
	storage, err := manyTypes(types, perType)
	if err != nil {
		return nil, err
	}
	return startLocalServer(compressWatchLists(readapi.NewHandler(storage,
		readapi.HandlerOptions{BookmarkInterval: bookmarkInterval})))
}

// manyTypes returns a storage of types with small objects.
func manyTypes(types, perType int) (*apiserver.Storage, error) {
	storage := apiserver.NewStorage(apiserver.StorageOptions{Stamp: true})
	for _, t := range experiment.TypesOf(types) {
		err := storage.SetType(readapi.Type{
			Group: t.GVR.Group, Names: crd.Names{Plural: t.GVR.Resource, Kind: t.Kind}, Namespaced: true,
			Versions: []readapi.Version{{Name: t.GVR.Version}},
		})
		if err != nil {
			return nil, err
		}
		for n := range perType {
			object, err := json.Marshal(smallObject(t.GVR.GroupVersion().String(), t.Kind, n))
			if err != nil {
				return nil, err
			}
			if _, err := storage.ApplyJSON(object); err != nil {
				return nil, err
			}
		}
	}
	return storage, nil
}

// smallObject returns an object of about 300 bytes, the minimum of typical custom resources.
func smallObject(apiVersion, kind string, n int) map[string]any {
	return map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"name": fmt.Sprintf("object-%02d", n),
			"namespace": fmt.Sprintf("team-%d", n%5)},
		"spec":   map[string]any{"class": "standard", "replicas": n},
		"status": map[string]any{"ready": true},
	}
}
