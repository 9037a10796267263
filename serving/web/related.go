package web

import (
	"cmp"
	"errors"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/internal/naming"
)

const maxRelated = 200

type relatedAnswer struct {
	// Owners and Refers are the objects to which the object refers. Owned and Referred are the objects
	// that refer to the object.
	Owners   []relation `json:"owners"`
	Refers   []relation `json:"refers"`
	Owned    []relation `json:"owned"`
	Referred []relation `json:"referred"`
	// More is the number of omitted references.
	More int `json:"more,omitempty"`
}

// relation is a reference from or to the displayed object.
type relation struct {
	// Type is the id of the other object's type. It is empty if the type is not cached.
	Type string `json:"type,omitempty"`
	Kind string `json:"kind"`
	Key  string `json:"key"`
	// Name of the reference
	Name string `json:"name"`
	// State is Resolved, Dangling or Unknown.
	State string `json:"state"`
}

// typeLookup has the types by group and resource, and by group and kind.
type typeLookup struct {
	byResource, byKind map[schema.GroupResource]*visibleType
}

func (s Source) newTypeLookup(types []*visibleType) typeLookup {
	lookup := typeLookup{map[schema.GroupResource]*visibleType{}, map[schema.GroupResource]*visibleType{}}
	for _, typ := range types {
		kind := s.kind(typ)
		for index, name := range map[*map[schema.GroupResource]*visibleType]string{
			&lookup.byResource: kind.Resource,
			&lookup.byKind:     kind.Kind} {
			groupName := schema.GroupResource{Group: kind.Group, Resource: name}
			if _, exists := (*index)[groupName]; !exists && name != "" {
				(*index)[groupName] = typ
			}
		}
	}
	return lookup
}

// typeOf returns the type of an object, or nil.
func (t typeLookup) typeOf(object references.Object) *visibleType {
	if object.Resource != "" {
		return t.byResource[schema.GroupResource{Group: object.Group, Resource: object.Resource}]
	}
	return t.byKind[schema.GroupResource{Group: object.Group, Resource: object.Kind}]
}

// isVisibleOrUncached reports whether an object is visible, or its type is not cached.
func (t typeLookup) isVisibleOrUncached(o references.Object) bool {
	typ := t.typeOf(o)
	return typ == nil || typ.scope.allows(o.Key())
}

func (t typeLookup) relation(r references.Reference, other references.Object) relation {
	out := relation{Kind: cmp.Or(other.Kind, other.Resource), Key: other.Key(), Name: r.Name,
		State: string(r.State)}
	switch typ := t.typeOf(other); {
	case typ == nil:
	case typ.scope.allows(other.Key()):
		out.Type = typ.id
	default:
		out.State = string(references.Unknown)
	}
	return out
}

// canShowReference returns false if a reference could reveal a hidden value of an object.
func (h *Handler) canShowReference(r references.Reference) bool {
	return r.Name == references.Owners ||
		!h.redactor.Redacts(schema.GroupResource{Group: r.From.Group, Resource: r.From.Resource})
}

func (h *Handler) related(r *http.Request) (any, error) {
	typ, err := h.requestedType(r)
	if err != nil {
		return nil, err
	}
	object := h.content(typ, r.FormValue("key"))
	if object == nil {
		return nil, notFound("object not found: " + r.FormValue("key"))
	}
	graph, err := h.graph.syncedGraph(r.Context(), h.source)
	if err != nil {
		return nil, err
	}
	kind := h.source.kind(typ)
	target := references.Object{Group: kind.Group, Resource: kind.Resource, Kind: kind.Kind,
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: string(object.GetUID())}
	types, err := h.scopedTypes(r)
	if err != nil {
		return nil, err
	}
	lookup := h.source.newTypeLookup(types)
	out := relatedAnswer{Owners: []relation{}, Refers: []relation{}, Owned: []relation{},
		Referred: []relation{}}
	add := func(list *[]relation, r references.Reference, other references.Object) {
		if len(*list) >= maxRelated {
			out.More++
			return
		}
		*list = append(*list, lookup.relation(r, other))
	}
	for _, reference := range graph.From(target) {
		switch {
		case reference.Name == references.Owners:
			add(&out.Owners, reference, reference.To)
		case h.canShowReference(reference):
			add(&out.Refers, reference, reference.To)
		}
	}
	for _, reference := range graph.To(target) {
		switch {
		case !lookup.isVisibleOrUncached(reference.From):
		case reference.Name == references.Owners:
			add(&out.Owned, reference, reference.From)
		case h.canShowReference(reference):
			add(&out.Referred, reference, reference.From)
		}
	}
	return out, nil
}

type danglingAnswer struct {
	References []danglingReference `json:"references"`
	More       int                 `json:"more,omitempty"`
	// Unchecked has the types whose references are unchecked, with the reasons.
	Unchecked []string `json:"unchecked,omitempty"`
}

type danglingReference struct {
	Key  string `json:"key"`
	Name string `json:"name"`
	To   string `json:"to"`
}

func (h *Handler) dangling(r *http.Request) (any, error) {
	typ, err := h.requestedType(r)
	if err != nil {
		return nil, err
	}
	if err := h.requireAll(r); errors.Is(err, errNamespacedUser) {
		return danglingAnswer{References: []danglingReference{}, Unchecked: []string{err.Error()}}, nil
	} else if err != nil {
		return nil, err
	}
	graph, err := h.graph.syncedGraph(r.Context(), h.source)
	if err != nil {
		return nil, err
	}
	kind := h.source.kind(typ)
	out := danglingAnswer{References: []danglingReference{}}
	for _, reference := range graph.Dangling() {
		if reference.From.Group != kind.Group || reference.From.Resource != kind.Resource ||
			!h.canShowReference(reference) {
			continue
		}
		if len(out.References) >= maxRelated {
			out.More++
			continue
		}
		out.References = append(out.References, danglingReference{reference.From.Key(), reference.Name,
			reference.To.String()})
	}
	if !h.hidesValues(typ) {
		out.Unchecked = naming.Texts(graph.ForType(kind).Unchecked(""), references.UncheckedReferences.String)
	}
	return out, nil
}
