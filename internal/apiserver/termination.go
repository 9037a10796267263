package apiserver

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

	"github.com/crdcache/crdcache/serving/readapi"
)

// owner is a terminating CustomResourceDefinition or Namespace. Its content is deleted before the owner.
type owner struct {
	kind schema.GroupKind
	name string
}

// cleanupFinalizer keeps a definition while there are objects of its type.
const cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io"

// markDefinition marks a definition as terminating, and reports whether it can be removed.
func markDefinition(u *unstructured.Unstructured, options *metav1.DeleteOptions,
	now time.Time) (removed bool) {
	if u.GetDeletionTimestamp() != nil {
		return markDeleted(u, options, now)
	}
	setDeletionTimestamp(u, now)
	if !slices.Contains(u.GetFinalizers(), cleanupFinalizer) {
		u.SetFinalizers(append(u.GetFinalizers(), cleanupFinalizer))
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	conditions = append(conditions, newTrueCondition("Terminating", "InstanceDeletionInProgress",
		"CustomResource deletion is in progress", now))
	// a status that is a string has no conditions
	_ = unstructured.SetNestedSlice(u.Object, conditions, "status", "conditions")
	return false
}

// hasContent reports whether an object is a namespace that still has content.
func hasContent(u *unstructured.Unstructured) bool {
	finalizers, _, _ := unstructured.NestedSlice(u.Object, "spec", "finalizers")
	return u.GroupVersionKind().GroupKind() == namespaceKind && len(finalizers) > 0
}

// admitCreate returns an error if the definition or the namespace of a new object is missing or terminating.
func (s *Storage) admitCreate(c *collection, namespace, name string) error {
	gr := c.typ.GroupResource()
	if c.terminating {
		return apierrors.NewForbidden(gr, name,
			errors.New("create not allowed while custom resource definition is terminating"))
	}
	if !s.options.Namespaces || !c.typ.Namespaced {
		return nil
	}
	parents := s.mu.types[namespaces]
	if parents == nil || parents.objects[namespace] == nil {
		return apierrors.NewNotFound(namespaces, namespace)
	}
	if _, terminating := s.mu.terminating[owner{namespaceKind, namespace}]; terminating {
		err := apierrors.NewForbidden(gr, name, fmt.Errorf(
			"unable to create new content in namespace %s because it is being terminated", namespace))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: "NamespaceTerminating", Message: fmt.Sprintf("namespace %s is being terminated", namespace),
			Field: "metadata.namespace",
		})
		return err
	}
	return nil
}

func (s *Storage) deleteContent(o owner, now time.Time) {
	if _, started := s.mu.terminating[o]; started {
		return
	}
	s.mu.terminating[o] = struct{}{}
	for _, content := range s.contentOwnedBy(o) {
		if o.kind == definitionKind {
			content.collection.terminating = true
		}
		for _, key := range content.keys {
			s.markOrRemove(content.collection, key, now)
		}
	}
	s.finishDeletions(now)
}

type ownedObjects struct {
	collection *collection
	keys       []string
}

// contentOwnedBy returns the content of an owner, sorted by type and key. It scans all candidates.
func (s *Storage) contentOwnedBy(o owner) []ownedObjects {
	var all []ownedObjects
	for _, c := range s.mu.types {
		owned := ownedObjects{collection: c}
		switch {
		case o.kind == definitionKind && c.definition == o.name:
			owned.keys = slices.Sorted(maps.Keys(c.objects))
		case o.kind == namespaceKind && c.typ.Namespaced:
			for key := range c.objects {
				if strings.HasPrefix(key, o.name+"/") {
					owned.keys = append(owned.keys, key)
				}
			}
			slices.Sort(owned.keys)
		default:
			continue
		}
		all = append(all, owned)
	}
	slices.SortFunc(all, func(a, b ownedObjects) int { return a.collection.compareType(b.collection) })
	return all
}

// markOrRemove removes an object, or marks it as terminating if it has finalizers.
func (s *Storage) markOrRemove(c *collection, key string, now time.Time) {
	before := c.objects[key]
	content, err := readapi.Decode(before)
	if err != nil {
		s.remove(c, key) // an object that cannot be decoded cannot be marked
		return
	}
	u := &unstructured.Unstructured{Object: content}
	if markDeleted(u, &metav1.DeleteOptions{}, now) {
		s.remove(c, key)
		return
	}
	s.rewrite(c, u, before, now)
}

// rewrite stores a state that differs from the stored one only in metadata, which cannot fail.
func (s *Storage) rewrite(c *collection, u *unstructured.Unstructured, before *object, now time.Time) {
	_, _, _ = s.store(c, u, before.version, putOptions{now: now, byClient: true, expected: before})
}

// finishDeletions removes the terminating owners without remaining content.
func (s *Storage) finishDeletions(now time.Time) {
	for progress := true; progress; {
		progress = false
		for _, o := range slices.SortedFunc(maps.Keys(s.mu.terminating), func(a, b owner) int {
			return cmp.Or(cmp.Compare(a.kind.Kind, b.kind.Kind), cmp.Compare(a.name, b.name))
		}) {
			if !slices.ContainsFunc(s.contentOwnedBy(o),
				func(c ownedObjects) bool { return len(c.keys) > 0 }) {
				delete(s.mu.terminating, o)
				s.finishDeletion(o, now)
				progress = true
			}
		}
	}
}

// finishDeletion removes the finalizer of an owner without content, and the owner if no finalizers remain.
func (s *Storage) finishDeletion(o owner, now time.Time) {
	c := s.mu.kinds[o.kind]
	if c == nil || c.objects[o.name] == nil {
		return
	}
	before := c.objects[o.name]
	content, err := readapi.Decode(before)
	if err != nil {
		return
	}
	u := &unstructured.Unstructured{Object: content}
	if o.kind == definitionKind {
		u.SetFinalizers(slices.DeleteFunc(u.GetFinalizers(),
			func(f string) bool { return f == cleanupFinalizer }))
	} else {
		unstructured.RemoveNestedField(u.Object, "spec", "finalizers")
	}
	if len(u.GetFinalizers()) > 0 {
		s.rewrite(c, u, before, now)
		return
	}
	s.remove(c, o.name)
	if o.kind == definitionKind {
		s.removeDefinedType(o.name, now)
	}
}
