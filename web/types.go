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
	bound := map[*dynamicinformer.Informer]bool{}
	if s.Binding != nil {
		for _, target := range s.Binding.Targets() {
			bound[target.Informer] = true
			types = append(types, &visibleType{informer: target.Informer, target: target,
				Declarations: Declarations{target.Source(), target.Resource.Indexes,
					target.Resource.References}})
		}
	}
	for _, informer := range s.Factory.Informers() {
		if !bound[informer] {
			k := &visibleType{informer: informer}
			if s.Declarations != nil {
				k.Declarations = s.Declarations(informer)
			}
			types = append(types, k)
		}
	}
	count := map[string]int{}
	for _, k := range types {
		k.id = idOf(k.informer.GVR())
		count[k.id]++
	}
	usedIDs := map[string]bool{}
	for _, k := range types {
		if count[k.id] > 1 {
			k.id += "#" + k.options()
			for n, base := 2, k.id; usedIDs[k.id]; n++ {
				k.id = fmt.Sprintf("%s#%d", base, n)
			}
		}
		usedIDs[k.id] = true
	}
	return types
}

// idOf returns the id of a type that occurs once.
func idOf(gvr schema.GroupVersionResource) string {
	return gvr.GroupResource().String() + "/" + gvr.Version
}

// options describes the selected objects of the type, or their form; empty for all objects.
func (k *visibleType) options() string {
	if k.target != nil {
		return k.target.Resource.Name
	}
	return k.informer.Status().Options
}

func (s Source) find(id string) *visibleType {
	for _, k := range s.visibleTypes() {
		if k.id == id {
			return k
		}
	}
	return nil
}

// kind returns the type's kind, from its CRD or from one of its objects.
func (s Source) kind(k *visibleType) references.Type {
	gvr := k.informer.GVR()
	t := references.Type{Group: gvr.Group, Resource: gvr.Resource}
	if d := s.definition(gvr); d != nil {
		t.Kind, t.Namespaced = d.Names.Kind, d.Namespaced
		return t
	}
	for key, object := range k.informer.Snapshot().AllStored() {
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

// columns returns the printer columns of the watched version, or the columns in builtIn for types without a
// CRD.
func (s Source) columns(k *visibleType) []crd.Column {
	gvr := k.informer.GVR()
	d := s.definition(gvr)
	if d == nil {
		return builtIn[gvr.GroupResource()]
	}
	version := gvr.Version
	if followed := k.informer.Status().Version; followed != "" {
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
func (h *Handler) content(k *visibleType, key string) *unstructured.Unstructured {
	if !k.scope.allows(key) {
		return nil
	}
	object, ok := k.informer.Snapshot().Stored(key)
	if !ok {
		return nil
	}
	return h.visibleContent(k.informer, object)
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
func (h *Handler) hidesValues(k *visibleType) bool {
	return h.redactor.Redacts(k.informer.GVR().GroupResource())
}

// evaluator returns an evaluator of queries over the visible objects of a type. If values are hidden, only
// namespaces, labels and owners can be queried.
func (h *Handler) evaluator(k *visibleType) evaluator { return evaluator{h.querier(k), k.scope} }

func (h *Handler) querier(k *visibleType) *query.Querier {
	if h.hidesValues(k) {
		return query.New(byNamespace{query.ForInformer(k.informer)})
	}
	source := k.Source
	if source == nil {
		source = query.ForInformer(k.informer)
	}
	querier := query.New(source, k.Indexes...)
	if d := h.source.definition(k.informer.GVR()); d != nil {
		querier = querier.WithDefinition(d, k.informer.GVR().Version)
	}
	return querier
}

// byNamespace is a source with only the namespace index.
type byNamespace struct{ query.Source }

type namespaceSnapshot struct{ query.Snapshot }

const namespaceIndex = "namespace"

func (s byNamespace) Snapshot() query.Snapshot { return namespaceSnapshot{s.Source.Snapshot()} }

func (s namespaceSnapshot) Index(name string) (query.Index, bool) {
	if name != namespaceIndex {
		return nil, false
	}
	return s.Snapshot.Index(name)
}

func (s namespaceSnapshot) IndexNames() []string { return []string{namespaceIndex} }
