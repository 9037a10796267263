package filesource

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/snapshot"
	"github.com/crdcache/crdcache/serving/readapi"
)

type snapshotBackend struct {
	file        *snapshot.File
	types       []readapi.Type
	collections map[schema.GroupResource]*snapshotCollection
	source      *Source
}

func newSnapshotBackend(file *snapshot.File, s *Source) *snapshotBackend {
	b := &snapshotBackend{file: file, collections: map[schema.GroupResource]*snapshotCollection{}, source: s}
	for _, saved := range file.Contents().Types {
		b.types = append(b.types, discoveredType(saved))
		gr := saved.GVR().GroupResource()
		b.collections[gr] = newSnapshotCollection(b, file.Objects(gr))
	}
	return b
}

// ServedTypes implements readapi.Backend. The types have only the details that discovery needs.
func (b *snapshotBackend) ServedTypes() (types []readapi.Type, generation uint64) { return b.types, 1 }

func (b *snapshotBackend) Collection(gr schema.GroupResource) readapi.Collection {
	if c := b.collections[gr]; c != nil {
		return c
	}
	return nil
}

// Versions returns the number of objects by version if there are several, and objects in the named ones.
func (b *snapshotBackend) Versions(gr schema.GroupResource, named ...string) (counts map[string]int,
	namedCount int) {
	counts = b.collections[gr].savedType.Written
	for _, version := range named {
		namedCount += counts[version]
	}
	return counts, namedCount
}

// discoveredType returns a type without the details of its CRD.
func discoveredType(t snapshot.SavedType) readapi.Type {
	served := readapi.Type{
		Group: t.Group, Namespaced: t.Namespaced, NeedsConversion: t.Written != nil, ServesUnconverted: true,
		Names: crd.Names{
			Plural: t.Resource, Singular: t.Singular, Kind: t.Kind, ListKind: t.Kind + "List",
			ShortNames: t.ShortNames, Categories: t.Categories,
		},
		Versions: []readapi.Version{{Name: t.Version}},
	}
	for _, version := range t.Versions {
		if version != t.Version {
			served.Versions = append(served.Versions, readapi.Version{Name: version})
		}
	}
	return served
}

// typeFromDefinition returns a type with the details of its CRD, or false if the snapshot has no CRD for it.
func (b *snapshotBackend) typeFromDefinition(t snapshot.Type) (readapi.Type, bool) {
	definitions := b.file.Objects(crd.GVR.GroupResource())
	if definitions == nil || !strings.Contains(t.Group, ".") {
		return readapi.Type{}, false
	}
	record, ok, err := definitions.Get(t.GVR().GroupResource().String())
	if !ok || err != nil {
		return readapi.Type{}, false
	}
	served, err := readapi.TypeOf(record.JSON)
	served.Custom = true
	return served, err == nil
}

func newSnapshotHandler(b *snapshotBackend) http.Handler {
	served := readapi.NewHandler(b, readapi.HandlerOptions{WriteTimeout: -1})
	server := b.file.Contents().Server
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimSuffix(r.URL.Path, "/")
		switch document := server.Documents[path]; {
		case path == "/version" && len(server.Version) > 0:
			writeResponse(w, "application/json", server.Version)
		case len(document) > 0 && strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList"):
			writeResponse(w, aggregatedMediaType, []byte(document))
		default:
			served.ServeHTTP(w, r)
		}
	})
}

const aggregatedMediaType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

func writeResponse(w http.ResponseWriter, mediaType string, text []byte) {
	w.Header().Set("Content-Type", mediaType)
	_, _ = w.Write(text) // fails only if the client has disconnected
}
