package web

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/indexers/references"
	"github.com/crdcache/crdcache/internal/naming"
)

// visibleType is an informer with its declarations in a config.
type visibleType struct {
	// id identifies the type in requests, as in "certificates.cert-manager.io/v1". It has a suffix if
	// several informers have this type.
	id       string
	informer *dynamicinformer.Informer
	target   *bind.Target // nil if the binding does not have the informer
	// indexes and references belong to the target.
	indexes    []*indexers.Index
	references []*indexers.Reference
	// scope is the part of the type that the user of the request may see.
	scope Scope
}

// visibleTypes returns the displayed types. An informer occurs once for each resource of the config that
// names it.
func (s Source) visibleTypes() []*visibleType {
	var types []*visibleType
	boundInformers := map[*dynamicinformer.Informer]bool{}
	if s.Binding != nil {
		for _, target := range s.Binding.Targets() {
			boundInformers[target.Informer] = true
			types = append(types, &visibleType{informer: target.Informer, target: target,
				indexes: target.Indexes(), references: target.Resource.References})
		}
	}
	for _, informer := range s.Factory.Informers() {
		if !boundInformers[informer] {
			types = append(types, &visibleType{informer: informer})
		}
	}
	idCounts := map[string]int{}
	for _, typ := range types {
		typ.id = typeID(typ.informer.GVR())
		idCounts[typ.id]++
	}
	usedIDs := map[string]bool{}
	for _, typ := range types {
		if idCounts[typ.id] > 1 {
			typ.id += "#" + typ.options()
			for n, base := 2, typ.id; usedIDs[typ.id]; n++ {
				typ.id = fmt.Sprintf("%s#%d", base, n)
			}
		}
		usedIDs[typ.id] = true
	}
	return types
}

func typeID(gvr schema.GroupVersionResource) string {
	return gvr.GroupResource().String() + "/" + gvr.Version
}

// options describes the selected objects of the type. It returns "" for all objects.
func (v *visibleType) options() string {
	if v.target != nil && v.target.Name != "" {
		return v.target.Name
	}
	return v.informer.Status().Options
}

func (s Source) find(id string) *visibleType {
	found, _ := naming.Find(s.visibleTypes(), func(typ *visibleType) bool { return typ.id == id })
	return found
}

// kind returns the kind from the CRD or from an object.
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
		} else if o := decodeStored(object); o != nil {
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
	if watchedVersion := typ.informer.Status().Version; watchedVersion != "" {
		version = watchedVersion
	}
	v, _ := d.Version(version)
	return v.Columns
}

// decodeStored decodes a value of a store; nil if it is no object. The result is shared and read-only.
func decodeStored(object any) *unstructured.Unstructured {
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

// visibleContent redacts an object. Responses must contain only objects that it returns.
func (h *Handler) visibleContent(informer *dynamicinformer.Informer, object any) *unstructured.Unstructured {
	o := decodeStored(object)
	if o == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: h.redactor.Object(informer.GVR().GroupResource(), o.Object)}
}

func (h *Handler) hidesValues(typ *visibleType) bool {
	return h.redactor.Redacts(typ.informer.GVR().GroupResource())
}

// evaluator returns a querier of the visible objects of a type. If values are hidden, only namespaces, labels
// and owners can be queried.
func (h *Handler) evaluator(typ *visibleType) restrictedQuerier {
	return restrictedQuerier{h.querier(typ), typ.scope}
}

func (h *Handler) querier(typ *visibleType) *query.Querier {
	if h.hidesValues(typ) {
		return query.New(namespaceOnlySource{bind.ForInformer(typ.informer)})
	}
	querier := query.New(bind.ForInformer(typ.informer))
	if typ.target != nil {
		querier = typ.target.Querier()
	}
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
