package cli

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/indexers/references"
)

// answerWithReferences answers a query about references. It also reads the types that the objects refer to,
// and referencedTypes, which the query names.
func (o *queryVerb) answerWithReferences(ctx context.Context, querier *query.Querier,
	types *session.Types, source session.Cache, referencedTypes []references.Type) error {
	graph := references.New()
	defer graph.Close()
	if err := addToGraph(graph, o.Reader, source); err != nil {
		return err
	}
	if err := graph.WaitForSync(ctx); err != nil {
		return err
	}
	requestedTypes := append(graph.UnknownTypes(), referencedTypes...)
	syncErr := error(nil)
	if len(requestedTypes) > 0 {
		shutdown, err := o.readReferencedTypes(ctx, graph, types, requestedTypes)
		if shutdown == nil {
			return err
		}
		defer shutdown()
		syncErr = err
	}
	querier = querier.WithReferences(graph.ForType(referenceType(source.Resource)))
	return errors.Join(syncErr, session.ExplainQuery(o.printResult(ctx, querier, types)))
}

// readReferencedTypes reads types into the graph and explains the types that the server lacks. shutdown is
// nil if nothing could be read. Otherwise err joins the errors of some types.
func (o *queryVerb) readReferencedTypes(ctx context.Context, graph *references.Graph, types *session.Types,
	requestedTypes []references.Type) (shutdown func(), err error) {
	syncCtx, cancel := o.WithTimeout(ctx)
	defer cancel()
	catalog, err := o.Catalog(syncCtx)
	if err != nil {
		return nil, err
	}
	unknown := func(t references.Type) []discovery.GroupFailure {
		return slices.DeleteFunc(catalog.FailedGroupVersions(),
			func(failure discovery.GroupFailure) bool { return failure.GroupVersion.Group != t.Group })
	}
	graph.Explain(func(t references.Type) string {
		switch _, ok := findType(catalog, t); {
		case ok:
			return ""
		case len(unknown(t)) > 0:
			return "its API group could not be discovered"
		}
		return "the server has no such type"
	})
	var unknownErr error
	var resources []discovery.Resource
	for _, t := range requestedTypes {
		r, ok := findType(catalog, t)
		if !ok {
			unknownErr = errors.Join(unknownErr,
				session.UnknownGroups(cmp.Or(t.Kind, t.Resource), unknown(t)))
		}
		if ok && r.GVR != types.Resources[0].GVR {
			resources = append(resources, r)
			o.RecordUse(r.GVR.GroupResource())
		}
	}
	reader := o.WithoutSelectors()
	caches, err := session.NewCaches(session.OneClient(types.Client), resources, reader.CacheOptions)
	if err != nil {
		return nil, err
	}
	syncErr := caches.Sync(syncCtx, o.Target)
	if ctx.Err() != nil {
		caches.Close()
		return nil, ctx.Err()
	}
	for _, cached := range caches.Synced {
		if err := addToGraph(graph, reader, cached); err != nil {
			caches.Close()
			return nil, err
		}
	}
	return caches.Close, errors.Join(unknownErr, syncErr, graph.WaitForSync(syncCtx))
}

// addToGraph adds a cache with the options of a reader to a graph.
func addToGraph(graph *references.Graph, reader *session.Reader, cached session.Cache) error {
	declared, options, err := reader.Declared(cached.Resource)
	if err == nil {
		_, err = graph.Add(references.InformerSource{
			Type: referenceType(cached.Resource), References: declared.References, Informer: cached.Informer,
			HasSelector: options.LabelSelector != nil || options.FieldSelector != nil,
			Namespaces:  declared.Namespaces.Matches,
		})
	}
	return err
}

func referenceType(r discovery.Resource) references.Type {
	return references.Type{Group: r.GVR.Group, Resource: r.GVR.Resource, Kind: r.GVK.Kind,
		Namespaced: r.Scope == discovery.Namespaced}
}

// findType returns the preferred version of a type with the group and the kind or resource.
func findType(catalog *discovery.Catalog, t references.Type) (found discovery.Resource, ok bool) {
	for _, r := range catalog.Resources() {
		isNamed := t.Kind != "" && r.GVK.Kind == t.Kind || t.Kind == "" && r.GVR.Resource == t.Resource
		if r.GVR.Group == t.Group && isNamed && r.HasVerbs("list") && (!ok || r.Preferred) {
			found, ok = r, true
		}
	}
	return found, ok
}
