package experiment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// Names of caches in reports and promises.
const (
	Stream            = "stream"
	ClientGo          = "client-go"
	ClientGoTrimmed   = "client-go-trimmed"
	ClientGoKept      = "client-go-kept"
	ControllerRuntime = "controller-runtime"
	ClientGoMetadata  = "client-go-metadata"
)

// Subject is a cache that the benchmark compares with others.
type Subject struct {
	// Name identifies it in flags and results.
	Name string
	// Title is its name in the report.
	Title string
	// IsCrdcache is set for crdcache's own modes.
	IsCrdcache bool
	// New returns the cache without sending requests.
	New func(Options) (Cache, error)
}

// Options are the options of a cache.
type Options struct {
	// Config has the API server's address and no client-side rate limit.
	Config *rest.Config
	// GVR and Kind are the resource and the kind of the custom resource.
	GVR  schema.GroupVersionResource
	Kind string
	// Handler is the kind of event handler.
	Handler Handler
	// OnSeen is called by the handler with the key of each added or updated object. Calls do not overlap.
	OnSeen func(key string)
}

// Handler is the work of an event handler before it calls Options.OnSeen.
type Handler string

// The handlers.
const (
	// NoHandler adds no handler.
	NoHandler Handler = ""
	// KeyHandler takes only the key, like a work queue.
	KeyHandler Handler = "key"
	// ReadHandler also reads two fields, like a predicate.
	ReadHandler Handler = "read"
)

// Subjects returns every cache in the order of the report.
func Subjects() []Subject {
	peers := []Subject{
		{Name: Stream, Title: "stream alone", New: newStream},
		{Name: ClientGo, Title: "client-go", New: newClientGo},
		{Name: ClientGoTrimmed, Title: "client-go, pruned",
			New: newClientGoTrimmed},
		{Name: ClientGoKept, Title: "client-go, five kept fields", New: newClientGoKept},
		{Name: ControllerRuntime, Title: "controller-runtime", New: newControllerRuntime},
		{Name: ClientGoMetadata, Title: "client-go, metadata", New: newClientGoMetadata},
	}
	return append(peers, storageModes()...)
}

// FindSubject returns the named cache.
func FindSubject(name string) (Subject, bool) {
	all := Subjects()
	i := slices.IndexFunc(all, func(s Subject) bool { return s.Name == name })
	if i < 0 {
		return Subject{}, false
	}
	return all[i], true
}

// newSubject returns the cache of the named subject without sending requests.
func newSubject(name string, o Options) (Cache, error) {
	s, ok := FindSubject(name)
	if !ok {
		return nil, fmt.Errorf("there is no cache %q; there are: %s", name, strings.Join(SubjectNames(), ", "))
	}
	return s.New(o)
}

// SubjectNames returns the names of all caches.
func SubjectNames() []string {
	var names []string
	for _, s := range Subjects() {
		names = append(names, s.Name)
	}
	return names
}

// Cache is a cache of one type. Sync is called once, and the cache runs until its context ends.
type Cache interface {
	// Sync starts the cache. It returns when the cache has all objects and the handler has received them.
	Sync(ctx context.Context) error
	// Len returns the number of objects.
	Len() int
}

// Reader is a cache that can be read. Callers must not keep the objects.
type Reader interface {
	Cache
	// Keys returns the keys of all objects.
	Keys() []string
	// Get returns the object of a key as the library returns it to users.
	Get(key string) (any, error)
	// ListAll lists all objects with the library's lister and returns their number.
	ListAll() (int, error)
	// ListNamespace lists the objects of a namespace with the library's index and returns their number.
	ListNamespace(namespace string) (int, error)
	// AddIndex adds an index of a field with unique values.
	AddIndex() error
	// ByIndex returns the only object with a value in that index.
	ByIndex(value string) (any, error)
}

// indexName is the index of Reader.AddIndex. indexField is its field, which is unique.
const indexName = "secret"

var indexField = []string{"spec", "secretName"}

// IndexValue returns an object's value in that index.
func IndexValue(object *unstructured.Unstructured) string {
	value, _, _ := unstructured.NestedString(object.Object, indexField...)
	return value
}

// indexFunc is a hand-written index function.
func indexFunc(object any) ([]string, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		if value := IndexValue(u); value != "" {
			return []string{value}, nil
		}
	}
	return nil, nil
}

// readFields reads a field of spec and one of status. Its result keeps the compiler from removing the reads.
func readFields(object any) int {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return 0
	}
	conditions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	list, _ := conditions.([]any)
	return len(IndexValue(u)) + len(list)
}

// readSink receives the handlers' results.
var readSink atomic.Int64

// handler returns the event handler of the options, or nil.
func (o Options) handler() cache.ResourceEventHandler {
	var onObject func(object any)
	switch o.Handler {
	case KeyHandler:
		onObject = func(object any) { o.reportKey(object) }
	case ReadHandler:
		onObject = func(object any) {
			readSink.Add(int64(readFields(object)))
			o.reportKey(object)
		}
	default:
		return nil
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    onObject,
		UpdateFunc: func(_, object any) { onObject(object) },
	}
}

func (o Options) reportKey(object any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
		o.OnSeen(key)
	}
}
