package subject

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// The names of the subjects that reports and promises refer to.
const (
	Stream            = "stream"
	ClientGo          = "client-go"
	ClientGoTrimmed   = "client-go-trimmed"
	ControllerRuntime = "controller-runtime"
	ClientGoMetadata  = "client-go-metadata"
)

// Subject is one way to keep a cache.
type Subject struct {
	// Name identifies it in flags and results.
	Name string
	// Title is its name in the report.
	Title string
	// Ours is set for crdcache's own modes.
	Ours bool
	// New makes the cache and contacts nobody.
	New func(Options) (Cache, error)
}

// Options are what a cache is made from.
type Options struct {
	// Config is the API server's. It has no client-side rate limit.
	Config *rest.Config
	// Type and Kind are those of the custom resource.
	Type schema.GroupVersionResource
	Kind string
	// Handler is the event handler that the cache gets.
	Handler Handler
	// Seen is called by the handler, one call at a time, with the key of each object added or updated.
	Seen func(key string)
}

// Handler is what an event handler does with an object before it calls Options.Seen.
type Handler string

// The handlers.
const (
	// NoHandler: there is none.
	NoHandler Handler = ""
	// KeyHandler takes the key alone, as a work queue's does.
	KeyHandler Handler = "key"
	// ReadHandler reads two fields of the body too, as a predicate or a filter does.
	ReadHandler Handler = "read"
)

// All returns every subject, in the order of the report.
func All() []Subject {
	peers := []Subject{
		{Name: Stream, Title: "bytes of the stream alone", New: newStream},
		{Name: ClientGo, Title: "client-go dynamicinformer", New: newClientGo},
		{Name: ClientGoTrimmed, Title: "client-go dynamicinformer, without managedFields",
			New: newClientGoTrimmed},
		{Name: ControllerRuntime, Title: "controller-runtime unstructured cache", New: newControllerRuntime},
		{Name: ClientGoMetadata, Title: "client-go metadata informer", New: newClientGoMetadata},
	}
	return append(peers, ours()...)
}

// Find returns the subjects with these names, in the order of the report.
func Find(names []string) ([]Subject, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	var found []Subject
	var known []string
	for _, s := range All() {
		known = append(known, s.Name)
		if wanted[s.Name] {
			found = append(found, s)
			delete(wanted, s.Name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("there is no subject %q; there are: %s", name, strings.Join(known, ", "))
	}
	return found, nil
}

// New makes the cache of the subject with a name, and contacts nobody.
func New(name string, o Options) (Cache, error) {
	found, err := Find([]string{name})
	if err != nil {
		return nil, err
	}
	return found[0].New(o)
}

// Names lists the names of subjects.
func Names(subjects []Subject) []string {
	names := make([]string, len(subjects))
	for i, s := range subjects {
		names[i] = s.Name
	}
	return names
}
