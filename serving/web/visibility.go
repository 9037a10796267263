package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/naming"
)

// Scope is the part of a type that a user may see.
type Scope struct {
	// Unknown is set while the rights of the user are not known. Then no objects of the type are shown.
	Unknown bool
	// All means that objects of all namespaces and cluster-scoped objects are visible.
	All bool
	// Namespaces are the visible namespaces if All is false. If it is empty, only the name of the type is
	// shown.
	Namespaces []string
	// Reason says why not all objects are visible.
	Reason string
}

func (s Scope) empty() bool { return !s.All && len(s.Namespaces) == 0 }

// allows reports whether the object with a key is visible.
func (s Scope) allows(key string) bool {
	namespace, _, namespaced := strings.Cut(key, "/")
	return s.All || namespaced && slices.Contains(s.Namespaces, namespace)
}

// id returns equal strings for equal scopes.
func (s Scope) id() string {
	if s.All {
		return "*"
	}
	return strings.Join(s.Namespaces, ",") // namespaces have no comma
}

// setScopes sets the scopes of types for the user of a request. Before the call, no object is visible.
func (h *Handler) setScopes(r *http.Request, types ...*visibleType) error {
	if h.visibleScopes == nil {
		for _, typ := range types {
			typ.scope = Scope{All: true}
		}
		return nil
	}
	scopes, err := h.visibleScopes(r, typeGVRs(types))
	if err != nil {
		return &statusError{http.StatusInternalServerError, fmt.Errorf("check your access rights: %w", err)}
	}
	for i, typ := range types {
		typ.scope = scopes[i]
	}
	return nil
}

func (h *Handler) scopedTypes(r *http.Request) ([]*visibleType, error) {
	types := h.source.visibleTypes()
	if h.knownScopes == nil {
		return types, h.setScopes(r, types...)
	}
	for i, scope := range h.knownScopes(r, typeGVRs(types)) {
		types[i].scope = scope
	}
	return types, nil
}

func typeGVRs(all []*visibleType) []schema.GroupVersionResource {
	return naming.Map(all,
		func(typ *visibleType) schema.GroupVersionResource { return typ.informer.GVR() })
}

// requireAll returns an error unless the user of a request sees all objects. Other users get no references,
// because a dangling reference reveals that an object does not exist.
func (h *Handler) requireAll(r *http.Request) error {
	types, err := h.scopedTypes(r)
	switch {
	case err != nil:
		return err
	case allVisible(types):
		return nil
	case slices.ContainsFunc(types,
		func(typ *visibleType) bool { return !typ.scope.Unknown && !typ.scope.All }):
		return errNamespacedUser
	}
	return &statusError{http.StatusServiceUnavailable,
		errors.New("your access rights to some types are not known yet: try again in a few seconds")}
}

var errNamespacedUser = forbiddenError("references are only for users who may list all types in all namespaces")

func allVisible(types []*visibleType) bool {
	return !slices.ContainsFunc(types, func(typ *visibleType) bool { return !typ.scope.All })
}

// conditionsFor removes the messages of conditions unless the user sees all objects. The messages can contain
// errors about invisible types.
func conditionsFor(types []*visibleType, conditions []condition) []condition {
	if !allVisible(types) {
		for i := range conditions {
			conditions[i].Message = ""
		}
	}
	return conditions
}

type restrictedQuerier struct {
	querier *query.Querier
	scope   Scope
}

func (r restrictedQuerier) restrict(q query.Query) query.Query {
	if r.scope.All {
		return q
	}
	return query.And(q, query.In(namespaceIndex, r.scope.Namespaces...))
}

// query is query.Querier.Query for the visible objects. If some objects are invisible, the result has no plan
// and no warnings.
func (r restrictedQuerier) query(ctx context.Context, q query.Query, options query.Options) (*query.Result,
	error) {
	result, err := r.querier.Query(ctx, r.restrict(q), options)
	if err != nil || r.scope.All {
		return result, err
	}
	objects, err := r.count(ctx)
	result.Plan = &query.Plan{Objects: objects, Scan: result.Plan.Scan}
	return result, err
}

func (r restrictedQuerier) values(ctx context.Context, index string, q query.Query) ([]query.ValueCount,
	error) {
	return r.querier.Values(ctx, index, r.restrict(q), query.Options{AllowScan: true})
}

func (r restrictedQuerier) count(ctx context.Context) (int, error) {
	return r.querier.Count(ctx, r.restrict(query.All()), query.Options{AllowScan: true})
}
