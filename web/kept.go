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
)

// kept is a type that is shown: an informer, and what a config says about it.
type kept struct {
	// id names it in requests: "certificates.cert-manager.io/v1", and where that is not unique, what tells it
	// apart.
	id       string
	informer *dynamicinformer.Informer
	target   *bind.Target // nil for what the binding does not have
	// indexes and references are what is declared of the objects.
	indexes    []*indexers.Index
	references []*indexers.Reference
	// scope is what is seen of it by the sender of the request that it was looked up for.
	scope Scope
}

// declare sets the indexes and references of a type that the binding does not have.
func (s Source) declare(k *kept) {
	if s.Indexes != nil {
		k.indexes = s.Indexes(k.informer.GVR())
	}
	if s.References != nil {
		k.references = s.References(k.informer.GVR())
	}
}

// kept returns what is shown now. Informers that a config names several times are there as often.
func (s Source) kept() []*kept {
	var all []*kept
	bound := map[*dynamicinformer.Informer]bool{}
	if s.Binding != nil {
		for _, target := range s.Binding.Targets() {
			bound[target.Informer] = true
			all = append(all, &kept{informer: target.Informer, target: target,
				indexes: target.Resource.Indexes, references: target.Resource.References})
		}
	}
	for _, informer := range s.Factory.Informers() {
		if !bound[informer] {
			k := &kept{informer: informer}
			s.declare(k)
			all = append(all, k)
		}
	}
	count := map[string]int{}
	for _, k := range all {
		k.id = idOf(k.informer.GVR())
		count[k.id]++
	}
	taken := map[string]bool{}
	for _, k := range all {
		if count[k.id] > 1 {
			k.id += "#" + k.view()
			for n, base := 2, k.id; taken[k.id]; n++ {
				k.id = fmt.Sprintf("%s#%d", base, n)
			}
		}
		taken[k.id] = true
	}
	return all
}

// idOf is the id of a type that is kept once.
func idOf(gvr schema.GroupVersionResource) string {
	return gvr.GroupResource().String() + "/" + gvr.Version
}

// view says which objects of the type these are, where not all of them, or in another form.
func (k *kept) view() string {
	if k.target != nil {
		return k.target.Resource.Name
	}
	return k.informer.Status().View
}

func (s Source) find(id string) *kept {
	for _, k := range s.kept() {
		if k.id == id {
			return k
		}
	}
	return nil
}

// kind describes the type, from its definition or from one of its objects.
func (s Source) kind(k *kept) references.Type {
	gvr := k.informer.GVR()
	t := references.Type{Group: gvr.Group, Resource: gvr.Resource}
	if d := s.definition(gvr); d != nil {
		t.Kind, t.Namespaced = d.Names.Kind, d.Namespaced
		return t
	}
	k.informer.Snapshot().AllStored(func(key string, object any) bool {
		if named, ok := object.(interface{ GetKind() string }); ok {
			t.Kind = named.GetKind()
		} else if o := decoded(object); o != nil {
			t.Kind = o.GetKind()
		}
		t.Namespaced = strings.Contains(key, "/")
		return false
	})
	return t
}

// columns are the printer columns of the version that is followed, and of types without a definition those of
// builtIn.
func (s Source) columns(k *kept) []crd.Column {
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

// decoded returns an object as it is kept in the form in which it can be read; nil for what is none. It is
// shared.
func decoded(object any) *unstructured.Unstructured {
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

// content is what may be shown of the object of a key; nil where there is none, or none that is seen.
func (h *Handler) content(k *kept, key string) *unstructured.Unstructured {
	if !k.scope.sees(key) {
		return nil
	}
	object, ok := k.informer.Snapshot().Stored(key)
	if !ok {
		return nil
	}
	return h.shown(k.informer, object)
}

// shown is what may be shown of an object, which is the only way from a cache to an answer.
func (h *Handler) shown(informer *dynamicinformer.Informer, object any) *unstructured.Unstructured {
	o := decoded(object)
	if o == nil {
		return nil
	}
	return &unstructured.Unstructured{Object: h.redactor.Object(informer.GVR().GroupResource(), o.Object)}
}

// hidden reports whether the values of a type's objects are not to be seen.
func (h *Handler) hidden(k *kept) bool { return h.redactor.Hides(k.informer.GVR().GroupResource()) }

// asker answers queries over what is seen of a type. Of one whose values are hidden, nothing but namespaces,
// labels and owners can be asked.
func (h *Handler) asker(k *kept) asker { return asker{h.querier(k), k.scope} }

func (h *Handler) querier(k *kept) *query.Querier {
	if h.hidden(k) {
		return query.New(byNamespace{query.ForInformer(k.informer)})
	}
	var querier *query.Querier
	if k.target != nil {
		querier = k.target.Querier()
	} else {
		querier = query.New(query.ForInformer(k.informer), k.indexes...)
	}
	if d := h.source.definition(k.informer.GVR()); d != nil {
		querier = querier.WithDefinition(d, k.informer.GVR().Version)
	}
	return querier
}

// byNamespace is a source without any index but that by namespace.
type byNamespace struct{ query.Source }

type namespaceSnapshot struct{ query.Snapshot }

const namespaceIndex = "namespace"

// Snapshot implements query.Source.
func (s byNamespace) Snapshot() query.Snapshot { return namespaceSnapshot{s.Source.Snapshot()} }

// Index implements query.Snapshot.
func (s namespaceSnapshot) Index(name string) (query.Index, bool) {
	if name != namespaceIndex {
		return nil, false
	}
	return s.Snapshot.Index(name)
}

// IndexNames implements query.Snapshot.
func (s namespaceSnapshot) IndexNames() []string { return []string{namespaceIndex} }
