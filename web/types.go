package web

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/indexers/references"
)

// visibleType is a displayed type: an informer, with its declarations in a config.
type visibleType struct {
	// id identifies the type in requests: "certificates.cert-manager.io/v1", with a suffix if that is not
	// unique.
	id       string
	informer *dynamicinformer.Informer
	target   *bind.Target // nil if the binding does not have the informer
	Declarations
	// scope is the part that the sender of the request may see.
	scope Scope
}

// visibleTypes returns the displayed types. An informer that a config names several times occurs several
// times.
func (s Source) visibleTypes() []*visibleType {
	var types []*visibleType
	boundInformers := map[*dynamicinformer.Informer]bool{}
	if s.Binding != nil {
		for _, target := range s.Binding.Targets() {
			boundInformers[target.Informer] = true
			types = append(types, &visibleType{informer: target.Informer, target: target,
				Declarations: Declarations{target.Source(), target.Resource.Indexes,
					target.Resource.References}})
		}
	}
	for _, informer := range s.Factory.Informers() {
		if !boundInformers[informer] {
			typ := &visibleType{informer: informer}
			if s.Declarations != nil {
				typ.Declarations = s.Declarations(informer)
			}
			types = append(types, typ)
		}
	}
	count := map[string]int{}
	for _, typ := range types {
		typ.id = idOf(typ.informer.GVR())
		count[typ.id]++
	}
	usedIDs := map[string]bool{}
	for _, typ := range types {
		if count[typ.id] > 1 {
			typ.id += "#" + typ.options()
			for n, base := 2, typ.id; usedIDs[typ.id]; n++ {
				typ.id = fmt.Sprintf("%s#%d", base, n)
			}
		}
		usedIDs[typ.id] = true
	}
	return types
}

// idOf returns the id of a type that occurs once.
func idOf(gvr schema.GroupVersionResource) string {
	return gvr.GroupResource().String() + "/" + gvr.Version
}

// options describes the selected objects of the type, or their form; empty for all objects.
func (v *visibleType) options() string {
	if v.target != nil {
		return v.target.Resource.Name
	}
	return v.informer.Status().Options
}

func (s Source) find(id string) *visibleType {
	for _, typ := range s.visibleTypes() {
		if typ.id == id {
			return typ
		}
	}
	return nil
}

// kind returns the type's kind, from its CRD or from one of its objects.
func (s Source) kind(typ *visibleType) references.Type {
	gvr := typ.informer.GVR()
	t := references.Type{Group: gvr.Group, Resource: gvr.Resource}
	if d := s.definition(gvr); d != nil {
		t.Kind, t.Namespaced = d.Names.Kind, d.Namespaced
		return t
	}
	for key, object := range typ.informer.Snapshot().AllStored() {
		if named, ok := object.(interface{ GetKind() string }); ok {
			t.Kind = named.GetKind()
		} else if o := decodedObject(object); o != nil {
			t.Kind = o.GetKind()
		}
		t.Namespaced = strings.Contains(key, "/")
		break
	}
	return t
}

// columns returns the printer columns of the watched version, or the columns in builtInColumns for types
// without a CRD.
func (s Source) columns(typ *visibleType) []crd.Column {
	gvr := typ.informer.GVR()
	d := s.definition(gvr)
	if d == nil {
		return builtInColumns[gvr.GroupResource()]
	}
	version := gvr.Version
	if followed := typ.informer.Status().Version; followed != "" {
		version = followed
	}
	v, _ := d.Version(version)
	return v.Columns
}

// decodedObject decodes a stored object, or returns nil if it is not an API object. The result is shared.
func decodedObject(object any) *unstructured.Unstructured {
	switch object := object.(type) {
	case *unstructured.Unstructured:
		return object
	case interface {
		Unstructured() *unstructured.Unstructured
	}:
		return object.Unstructured()
	}
	return nil
}

// content returns the visible content of an object, or nil if it does not exist or is not visible.
func (h *Handler) content(typ *visibleType, key string) *unstructured.Unstructured {
	if !typ.scope.allows(key) {
		return nil
	}
	object, ok := typ.informer.Snapshot().Stored(key)
	if !ok {
		return nil
	}
	return h.visibleContent(typ.informer, object)
}

// visibleContent returns the visible content of an object. All contents of responses come from it.
func (h *Handler) visibleContent(informer *dynamicinformer.Informer, object any) *unstructured.Unstructured {
	o := decodedObject(object)
	if o == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: h.redactor.Object(informer.GVR().GroupResource(), o.Object)}
}

// hidesValues reports whether the values of a type's objects are hidden.
func (h *Handler) hidesValues(typ *visibleType) bool {
	return h.redactor.Redacts(typ.informer.GVR().GroupResource())
}

// evaluator returns an evaluator of queries over the visible objects of a type. If values are hidden, only
// namespaces, labels and owners can be queried.
func (h *Handler) evaluator(typ *visibleType) restrictedQuerier {
	return restrictedQuerier{h.querier(typ), typ.scope}
}

func (h *Handler) querier(typ *visibleType) *query.Querier {
	if h.hidesValues(typ) {
		return query.New(namespaceOnlySource{query.ForInformer(typ.informer)})
	}
	source := typ.Source
	if source == nil {
		source = query.ForInformer(typ.informer)
	}
	querier := query.New(source, typ.Indexes...)
	if d := h.source.definition(typ.informer.GVR()); d != nil {
		querier = querier.WithDefinition(d, typ.informer.GVR().Version)
	}
	return querier
}

// namespaceOnlySource is a source with only the namespace index.
type namespaceOnlySource struct{ query.Source }

type namespaceOnlySnapshot struct{ query.Snapshot }

const namespaceIndex = "namespace"

func (b namespaceOnlySource) Snapshot() query.Snapshot {
	return namespaceOnlySnapshot{b.Source.Snapshot()}
}

func (s namespaceOnlySnapshot) Index(name string) (query.Index, bool) {
	if name != namespaceIndex {
		return nil, false
	}
	return s.Snapshot.Index(name)
}

func (s namespaceOnlySnapshot) IndexNames() []string { return []string{namespaceIndex} }
