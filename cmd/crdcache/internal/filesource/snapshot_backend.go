package filesource

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/block"
	"github.com/crdcache/crdcache/internal/manifest"
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

func (s *Source) newSnapshotHandler(b *snapshotBackend) http.Handler {
	contents := b.file.Contents()
	server := contents.Server
	s.Time = func() time.Time { return contents.Created }
	served := s.newHandler(b)
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

// openOnlySnapshot opens the snapshot among the paths, or returns nil. A snapshot must be the only path,
// because its discovery and tables do not apply to other files.
func openOnlySnapshot(ctx context.Context, options *Options) (*snapshot.File, error) {
	for _, path := range options.Paths {
		switch isSnapshot := isSnapshot(ctx, path, options); {
		case !isSnapshot:
		case len(options.Paths) > 1:
			return nil, fmt.Errorf("%s is a snapshot, which cannot be combined with other files: omit the others", path)
		case path == manifest.Stdin:
			return readSnapshot(options.In)
		default:
			return snapshot.Open(path)
		}
	}
	return nil, nil
}

// isSnapshot reports whether a path is a snapshot. It reads only regular files, because reading consumes a
// pipe, and standard input. The manifest reader reports the errors of paths.
func isSnapshot(ctx context.Context, path string, options *Options) bool {
	if path == manifest.Stdin {
		return options.In != nil && isStdinSnapshot(ctx, options)
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return err == nil && info.IsDir() && snapshot.IsFolder(path)
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	head := make([]byte, len(block.Magic))
	_, err = io.ReadFull(file, head)
	return err == nil && string(head) == block.Magic
}

// isStdinSnapshot makes options.In a reader that has consumed nothing.
func isStdinSnapshot(ctx context.Context, options *Options) bool {
	stream, err := (&manifest.File{Path: manifest.Stdin}).Open(ctx, options.In)
	if err != nil {
		return false
	}
	in := bufio.NewReader(stream)
	options.In = in
	head, err := in.Peek(len(block.Magic))
	return err == nil && string(head) == block.Magic
}

// readSnapshot reads a snapshot from standard input into memory.
func readSnapshot(in io.Reader) (file *snapshot.File, err error) {
	text, err := io.ReadAll(in)
	if err == nil {
		file, err = snapshot.NewFile(bytes.NewReader(text), int64(len(text)))
	}
	if err != nil {
		return nil, fmt.Errorf("read a snapshot from standard input: %w", err)
	}
	return file, nil
}

// serveSnapshot serves a snapshot. It warns if the snapshot has only one namespace.
func (s *Source) serveSnapshot(file *snapshot.File) {
	backend := newSnapshotBackend(file, s)
	s.snapshot, s.backend, s.handler = file, backend, s.newSnapshotHandler(backend)
	contents := file.Contents()
	for i, err := range slices.Concat(contents.Damage, contents.Notes) {
		isWarning := i >= len(contents.Damage)
		s.addProblem(&manifest.Problem{File: s.options.Paths[0], Warning: isWarning, Err: err})
	}
	for _, r := range contents.Incomplete {
		if r.Type == "" {
			s.addProblem(&manifest.Problem{File: s.options.Paths[0], Err: manifest.PartialError(r.Text)})
		}
	}
	s.setReasons(contents.Incomplete)
	if contents.Namespace != "" {
		err := fmt.Errorf("the snapshot contains only the namespace %s", contents.Namespace)
		s.addProblem(&manifest.Problem{File: s.options.Paths[0], Warning: true, Err: err})
	}
}
