package filesource

import (
	"iter"
	"net/http"
	"strconv"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/jsontext"
	"github.com/crdcache/crdcache/serving/readapi"
)

// Object is an object of a list. It is decompressed when it is read.
type Object struct {
	readapi.Object
	version       schema.GroupVersion
	managedFields bool // are kept
}

var buffers = sync.Pool{New: func() any { return new([2][]byte) }}

// ReadJSON calls f with the JSON of the object, which is valid until f returns.
func (o Object) ReadJSON(f func(json []byte) error) (err error) {
	b := buffers.Get().(*[2][]byte)
	defer buffers.Put(b)
	switch b[0], err = o.AppendJSON(b[0][:0], strconv.Quote(o.version.String())); {
	case err != nil:
		return err
	case o.managedFields:
		return f(b[0])
	}
	b[1] = jsontext.AppendWithout(b[1][:0], b[0], "metadata", "managedFields")
	return f(b[1])
}

// List returns the objects of a list request, in its order, without encoding them as an answer. It returns
// nil if the request must be sent: for selectors, pages, conversions, snapshots, clusters and errors.
func (s *Source) List(gvr schema.GroupVersionResource, namespace string, options metav1.ListOptions,
	managedFields bool) (objects iter.Seq[Object], version string) {
	if !listsAll(options) || s == nil || s.storage == nil {
		return nil, ""
	}
	c, isVersioned := s.storage.Collection(gvr.GroupResource()).(readapi.Versioned)
	if !isVersioned || c.(readapi.Refuser).Refused(gvr.Version) != nil {
		return nil, ""
	}
	inVersion := c.InVersion(gvr.Version)
	t, snapshot := inVersion.Type(), inVersion.Snapshot(0)
	if t.Version(gvr.Version) == nil || !t.Namespaced && namespace != "" ||
		!t.ServesUnconverted && len(t.Versions) > 1 {
		return nil, ""
	}
	from, to := keyRange(namespace)
	return func(yield func(Object) bool) {
		for o := range snapshot.Range(from, to) {
			version := schema.GroupVersion{Group: gvr.Group, Version: o.Version()}
			if !yield(Object{o, version, managedFields}) {
				return
			}
		}
	}, strconv.FormatUint(snapshot.ResourceVersion(), 10)
}

func listsAll(options metav1.ListOptions) bool {
	return options.LabelSelector == "" && options.FieldSelector == "" && options.Continue == "" &&
		options.ResourceVersionMatch == ""
}

// keyRange returns the range of the keys of a namespace; empty means all.
func keyRange(namespace string) (from, to string) {
	if namespace == "" {
		return "", ""
	}
	return namespace + "/", namespace + "0" // "0" follows "/"
}

// transport is the transport of the clients of a source. Informers list without requests.
type transport struct {
	http.RoundTripper
	source *Source
}

// ListJSON implements requests.JSONLister.
func (t transport) ListJSON(gvr schema.GroupVersionResource, namespace string,
	options metav1.ListOptions) (objects iter.Seq2[[]byte, error], version string) {
	list, version := t.source.List(gvr, namespace, options, true)
	if list == nil {
		return t.source.listSnapshot(gvr, namespace, options)
	}
	return func(yield func([]byte, error) bool) {
		var text []byte
		for o := range list {
			var err error
			if text, err = o.AppendJSON(text[:0], strconv.Quote(o.version.String())); !yield(text, err) {
				return
			}
		}
	}, version
}

// listSnapshot works like List for types of a snapshot of which all objects are in the requested version.
func (s *Source) listSnapshot(gvr schema.GroupVersionResource, namespace string,
	options metav1.ListOptions) (objects iter.Seq2[[]byte, error], version string) {
	c, ok := s.backend.Collection(gvr.GroupResource()).(*snapshotCollection)
	if !ok || !listsAll(options) || c.savedType.Written != nil || c.savedType.Version != gvr.Version ||
		c.Refused(gvr.Version) != nil {
		return nil, ""
	}
	if t := c.Type(); t.Version(gvr.Version) == nil || !t.Namespaced && namespace != "" {
		return nil, ""
	}
	from, to := keyRange(namespace)
	return func(yield func([]byte, error) bool) {
		for r, err := range c.savedObjects.Range(from, to) {
			if !yield(r.JSON, err) {
				return
			}
		}
	}, strconv.FormatUint(c.version, 10)
}
