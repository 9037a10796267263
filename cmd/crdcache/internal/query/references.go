package query

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
func (o *verb) answerWithReferences(ctx context.Context, querier *query.Querier,
	types *session.Types, source session.Cache, referencedTypes []references.Type) error {
	graph := references.New()
	defer graph.Close()
	if err := session.AddToGraph(graph, o.Reader, source); err != nil {
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
	querier = querier.WithReferences(graph.ForType(session.ReferenceType(source.Resource)))
	return errors.Join(syncErr, session.ExplainQuery(o.printResult(ctx, querier, types)))
}

// readReferencedTypes reads types into the graph and explains the types that the server lacks. shutdown is
// nil if nothing could be read. Otherwise err joins the errors of the types that could not be read.
func (o *verb) readReferencedTypes(ctx context.Context, graph *references.Graph, types *session.Types,
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
		switch _, ok := session.FindType(catalog, t); {
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
		r, ok := session.FindType(catalog, t)
		if !ok {
			unknownErr = errors.Join(unknownErr,
				session.UnknownGroups(cmp.Or(t.Kind, t.Resource), unknown(t)))
		}
		if ok && r.GVR != types.Resources[0].GVR {
			resources = append(resources, r)
			o.RecordUse(true, r.GVR.GroupResource())
		}
	}
	reader := o.WithoutSelectors()
	caches, err := session.NewCaches(session.OneClient(types.Client), resources, reader.CacheOptions, nil)
	if err != nil {
		return nil, err
	}
	syncErr := caches.Sync(syncCtx, o.Target)
	if ctx.Err() != nil {
		caches.Close()
		return nil, ctx.Err()
	}
	if err := session.AddToGraph(graph, reader, caches.Synced...); err != nil {
		caches.Close()
		return nil, err
	}
	return caches.Close, errors.Join(unknownErr, syncErr, graph.WaitForSync(syncCtx))
}
