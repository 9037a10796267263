package readapi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// leaving is a definition or a namespace that is being deleted. It deletes what it holds, and goes when that
// has gone.
type leaving struct {
	kind schema.GroupKind
	name string
}

// cleanupFinalizer keeps a definition as long as there are objects of its type.
const cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io"

// markDefinition makes a definition one that is being deleted, and reports whether nothing keeps it.
func markDefinition(u *unstructured.Unstructured, options *metav1.DeleteOptions, now time.Time) (gone bool) {
	if u.GetDeletionTimestamp() != nil {
		return markDeleted(u, options, now)
	}
	setDeletionTimestamp(u, now)
	if !slices.Contains(u.GetFinalizers(), cleanupFinalizer) {
		u.SetFinalizers(append(u.GetFinalizers(), cleanupFinalizer))
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	conditions = append(conditions, conditionOf("Terminating", "InstanceDeletionInProgress",
		"CustomResource deletion is in progress", now))
	// a status that is a string has no conditions
	_ = unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions")
	return false
}

// holdsContent reports whether an object is a namespace that a cluster has not emptied.
func holdsContent(u *unstructured.Unstructured) bool {
	finalizers, _, _ := unstructured.NestedSlice(u.Object, "spec", "finalizers")
	return u.GroupVersionKind().GroupKind() == namespaceKind && len(finalizers) > 0
}

// markNamespace makes a namespace one that is being deleted.
func markNamespace(u *unstructured.Unstructured, now time.Time) {
	setDeletionTimestamp(u, now)
	u.Object["status"] = map[string]any{"phase": "Terminating"}
}

// completeNamespace gives a namespace what a cluster would.
func completeNamespace(u *unstructured.Unstructured) {
	labels := u.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels["kubernetes.io/metadata.name"] = u.GetName()
	u.SetLabels(labels)
	if u.GetDeletionTimestamp() == nil {
		u.Object["spec"] = map[string]any{"finalizers": []any{"kubernetes"}}
		u.Object["status"] = map[string]any{"phase": "Active"}
	}
}

// admit refuses a new object where a definition or a namespace is not there or is being deleted.
func (s *Storage) admit(c *collection, namespace, name string) error {
	gr := c.typ.GroupResource()
	if c.terminating {
		return apierrors.NewForbidden(gr, name, errTypeLeaving)
	}
	if !s.options.Namespaces || !c.typ.Namespaced {
		return nil
	}
	within := s.mu.types[namespaces]
	if within == nil || within.objects[namespace] == nil {
		return apierrors.NewNotFound(namespaces, namespace)
	}
	if _, going := s.mu.leaving[leaving{namespaceKind, namespace}]; going {
		return errNamespaceLeaving(gr, namespace, name)
	}
	return nil
}

// mayCreate is admit for a request.
func (s *Storage) mayCreate(t *resource, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.mu.types[t.typ.GroupResource()]
	if c == nil {
		return apierrors.NewNotFound(t.typ.GroupResource(), name) // the type has just gone
	}
	return s.admit(c, t.namespace, name)
}

// sweep deletes what a definition or a namespace holds that is being deleted.
func (s *Storage) sweep(l leaving, w write) {
	if _, begun := s.mu.leaving[l]; begun {
		return
	}
	s.mu.leaving[l] = struct{}{}
	w.basis = nil // is of what is leaving
	for _, h := range s.held(l) {
		if l.kind == definitionKind {
			h.collection.terminating = true
		}
		for _, key := range h.keys {
			s.dismiss(h.collection, key, w)
		}
	}
	s.settle(w)
}

// holding is what of a type a definition or a namespace holds.
type holding struct {
	collection *collection
	keys       []string
}

// held returns what a definition or a namespace holds, in order. It looks at all objects that it may be.
func (s *Storage) held(l leaving) []holding {
	var all []holding
	for _, c := range s.mu.types {
		h := holding{collection: c}
		switch {
		case l.kind == definitionKind && c.custom == l.name:
			h.keys = slices.Sorted(maps.Keys(c.objects))
		case l.kind == namespaceKind && c.typ.Namespaced:
			for key := range c.objects {
				if strings.HasPrefix(key, prefixOf(l.name)) {
					h.keys = append(h.keys, key)
				}
			}
			slices.Sort(h.keys)
		default:
			continue
		}
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b holding) int {
		x, y := a.collection.typ, b.collection.typ
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Names.Plural, y.Names.Plural))
	})
	return all
}

// dismiss deletes an object, or marks it where it has finalizers.
func (s *Storage) dismiss(c *collection, key string, w write) {
	before := c.objects[key]
	content, err := decode(before)
	if err != nil {
		s.remove(c, key) // it cannot be read, which is no reason to keep it
		return
	}
	u := &unstructured.Unstructured{Object: content}
	if markDeleted(u, &metav1.DeleteOptions{}, w.now) {
		s.remove(c, key)
		return
	}
	_, _, _ = s.store(c, u, before.stored, w) // it has been stored before, but for two fields
}

// settle lets what was being deleted go where it holds nothing any more.
func (s *Storage) settle(w write) {
	for progress := true; progress; {
		progress = false
		for _, l := range slices.SortedFunc(maps.Keys(s.mu.leaving), func(a, b leaving) int {
			return cmp.Or(cmp.Compare(a.kind.Kind, b.kind.Kind), cmp.Compare(a.name, b.name))
		}) {
			if !slices.ContainsFunc(s.held(l), func(h holding) bool { return len(h.keys) > 0 }) {
				delete(s.mu.leaving, l)
				s.release(l, w)
				progress = true
			}
		}
	}
}

// release removes a definition or a namespace that holds nothing any more, unless somebody else keeps it.
func (s *Storage) release(l leaving, w write) {
	c := s.mu.kinds[l.kind]
	if c == nil || c.objects[l.name] == nil {
		return
	}
	before := c.objects[l.name]
	content, err := decode(before)
	if err != nil {
		return
	}
	u := &unstructured.Unstructured{Object: content}
	if l.kind == definitionKind {
		u.SetFinalizers(slices.DeleteFunc(u.GetFinalizers(),
			func(f string) bool { return f == cleanupFinalizer }))
	} else {
		unstructured.RemoveNestedField(u.Object, "spec", "finalizers")
	}
	if len(u.GetFinalizers()) > 0 {
		_, _, _ = s.store(c, u, before.stored, w) // it has been stored before, but for one field
		return
	}
	s.remove(c, l.name)
	if l.kind == definitionKind {
		s.undefine(l.name, w)
	}
}

var errTypeLeaving = errors.New("create not allowed while custom resource definition is terminating")

func errNamespaceLeaving(gr schema.GroupResource, namespace, name string) error {
	err := apierrors.NewForbidden(gr, name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: "NamespaceTerminating", Message: fmt.Sprintf("namespace %s is being terminated",
			namespace), Field: "metadata.namespace",
	})
	return err
}
