package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers/references"
)

// wood is what trees are made of: the objects that were named, and all that may be related to them.
type wood struct {
	*treeOptions
	roots  session.Got
	client *session.Types // reads single objects
	graph  *references.Graph
	caches *session.Caches
	// namespace is the one whose objects were read; empty for all.
	namespace string
	unread    []unreadType
	failed    []failedType // those of them that should have been read
}

// unreadType is a type that was not looked at, and why.
type unreadType struct {
	Type   string `json:"type"`
	Reason string `json:"reason"`
}

// Why a type is not read, besides what goes wrong.
const (
	leftOut     = "left out unless --types names it"
	unwatchable = "cannot be listed and watched"
	forbidden   = "may not be read"
)

// read gets the objects and reads all types that may be related to them. It gives nothing where there is no tree; else the
// error says of what it is not the whole one.
func (o *treeOptions) read(ctx context.Context) (*wood, error) {
	waiting, cancel := o.Target.Limit(ctx)
	defer cancel()
	types, got, err := o.Get(waiting, []session.Named{o.named})
	if err != nil || len(got) == 0 {
		return nil, err
	}
	w := &wood{treeOptions: o, roots: got[0], client: types, namespace: o.Target.Namespace}
	if w.roots.Resource.Scope != discovery.Namespaced && !o.inNamespace {
		w.namespace = "" // what belongs to it may be in any
	}
	resources, unresolved, err := w.choose(waiting)
	if err != nil {
		return nil, err
	}
	w.caches, err = session.NewCaches(types.Client, resources, session.CacheOptions{
		Namespace: w.namespace, Defaults: o.Cached(), Resources: w.metadata(resources),
	})
	if err != nil {
		return nil, err
	}
	w.graph = references.New()
	if err := w.fill(ctx, waiting); err != nil {
		w.close()
		return nil, err
	}
	return w, errors.Join(unresolved, w.incomplete())
}

func (w *wood) close() {
	w.graph.Close()
	w.caches.Shutdown()
}

// choose gives the types to read, of which the first is that of the objects. Names that stand for none are joined in
// unresolved.
func (w *wood) choose(ctx context.Context) (chosen []discovery.Resource, unresolved, err error) {
	root := w.roots.Resource
	chosen = []discovery.Resource{root}
	add := func(r discovery.Resource) {
		if !slices.ContainsFunc(chosen, func(x discovery.Resource) bool { return x.GVR.GroupResource() == r.GVR.GroupResource() }) {
			chosen = append(chosen, r)
		}
	}
	if len(w.types) > 0 {
		named, unresolved := w.Target.Resolve(ctx, w.types)
		for _, r := range named {
			add(r)
		}
		return chosen, unresolved, nil
	}
	catalog, err := w.Target.Catalog(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range catalog.Resources() {
		name := r.GVR.GroupResource()
		switch {
		case !r.Preferred || name == root.GVR.GroupResource():
		case name.Resource == "events" && (name.Group == "" || name.Group == "events.k8s.io"):
			w.unread = append(w.unread, unreadType{name.String(), leftOut})
		case !r.Watchable():
			if r.HasVerbs("get") {
				w.unread = append(w.unread, unreadType{name.String(), unwatchable})
			}
		default:
			add(r)
		}
	}
	for _, failed := range catalog.Unknown() {
		w.unread = append(w.unread, unreadType{"*." + failed.GroupVersion.String(), fmt.Sprintf("could not be discovered: %v", failed.Err)})
	}
	return chosen, nil, nil
}

// metadata has the types of whose objects no more than the metadata is read: their owners are all that they refer to.
func (w *wood) metadata(resources []discovery.Resource) map[schema.GroupVersionResource]dynamicinformer.ResourceOptions {
	options := map[schema.GroupVersionResource]dynamicinformer.ResourceOptions{}
	for _, r := range resources {
		if len(w.Config.References(r)) == 0 {
			options[r.GVR] = dynamicinformer.ResourceOptions{Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageMetadata}}
		}
	}
	return options
}

// fill syncs the caches and puts their objects into the graph.
func (w *wood) fill(ctx, waiting context.Context) error {
	done := w.Target.Progress(w.caches.Progress)
	err := w.caches.Sync(waiting)
	done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := w.noteUnsynced(err); err != nil {
		return err
	}
	for _, cached := range w.caches.Synced {
		if err := addMember(w.graph, w.Config, cached, w.namespace, false); err != nil {
			return err
		}
	}
	return w.graph.WaitForSync(ctx) // all is here: it takes no request
}

// failedType is why a type could not be read.
type failedType struct {
	unreadType
	err error
}

// incompleteError says that a tree is not the whole one.
type incompleteError struct{ failed []failedType }

// mostFailed is how many types an error names for one reason.
const mostFailed = 10

// Error names the types by what is the matter with them.
func (e *incompleteError) Error() string {
	var reasons []string
	names := map[string][]string{}
	for _, f := range e.failed {
		if names[f.Reason] == nil {
			reasons = append(reasons, f.Reason)
		}
		names[f.Reason] = append(names[f.Reason], f.Type)
	}
	parts := make([]string, len(reasons))
	for i, reason := range reasons {
		parts[i] = nameSome(names[reason]) + ": " + reason
	}
	return "the tree may lack objects of types that were not read: " + strings.Join(parts, "; ") + " (--types names those to read)"
}

// Unwrap gives why each type was not read.
func (e *incompleteError) Unwrap() []error {
	errs := make([]error, len(e.failed))
	for i, f := range e.failed {
		errs[i] = f.err
	}
	return errs
}

func nameSome(names []string) string {
	if len(names) > mostFailed {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostFailed], ", "), len(names)-mostFailed)
	}
	return strings.Join(names, ", ")
}

// noteUnsynced notes the types that did not sync; any other error is none of single types.
func (w *wood) noteUnsynced(err error) error {
	var unsynced *dynamicinformer.NotSyncedError
	if err == nil || !errors.As(err, &unsynced) {
		return err
	}
	for _, current := range unsynced.Missing {
		one := failedType{
			unreadType: unreadType{current.GVR.GroupResource().String(), print.Line(current.Message)},
			err:        &dynamicinformer.NotSyncedError{Missing: []status.Status{current}, Cause: unsynced.Cause},
		}
		switch {
		case current.Reason == status.ReasonForbidden:
			one.Reason = forbidden
		case one.Reason == "":
			one.Reason = "not synced in time"
		}
		w.failed = append(w.failed, one)
		w.unread = append(w.unread, one.unreadType)
	}
	return nil
}

// incomplete is the error of the types that could not be read; nil where all could.
func (w *wood) incomplete() error {
	if len(w.failed) == 0 {
		return nil
	}
	return &incompleteError{w.failed}
}
