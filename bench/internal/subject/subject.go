package subject

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// The names of the subjects in reports and promises.
const (
	Stream            = "stream"
	ClientGo          = "client-go"
	ClientGoTrimmed   = "client-go-trimmed"
	ControllerRuntime = "controller-runtime"
	ClientGoMetadata  = "client-go-metadata"
)

// Subject is a kind of cache.
type Subject struct {
	// Name identifies it in flags and results.
	Name string
	// Title is its name in the report.
	Title string
	// Ours is set for crdcache's own modes.
	Ours bool
	// New returns the cache without sending requests.
	New func(Options) (Cache, error)
}

// Options are the options of a cache.
type Options struct {
	// Config has the API server's address and no client-side rate limit.
	Config *rest.Config
	// Type and Kind are the resource and the kind of the custom resource.
	Type schema.GroupVersionResource
	Kind string
	// Handler is the kind of event handler.
	Handler Handler
	// Seen is called by the handler with the key of each added or updated object. Calls do not overlap.
	Seen func(key string)
}

// Handler is the work of an event handler before it calls Options.Seen.
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

// All returns every subject in the order of the report.
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

// Find returns the named subjects in the order of the report.
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

// New returns the cache of the named subject without sending requests.
func New(name string, o Options) (Cache, error) {
	found, err := Find([]string{name})
	if err != nil {
		return nil, err
	}
	return found[0].New(o)
}

// Names returns the names of subjects.
func Names(subjects []Subject) []string {
	names := make([]string, len(subjects))
	for i, s := range subjects {
		names[i] = s.Name
	}
	return names
}
