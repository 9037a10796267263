package readapi

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// write is how an object is written.
type write struct {
	now time.Time
	// restore keeps the resource version of the object and leaves no trace in the history.
	restore bool
	// client: somebody asked for it over the API.
	client bool
	// basis is the state that must be there; nil: any.
	basis *basis
}

// put is write for those who only want to know what became of it.
func (s *Storage) put(content map[string]any, w write) (Outcome, error) {
	_, outcome, err := s.write(content, w)
	return outcome, err
}

// write stores an object, and returns its state. It may change the top of content and its metadata, and with
// StorageOptions.Conform all of it.
func (s *Storage) write(content map[string]any, w write) (*object, Outcome, error) {
	u := &unstructured.Unstructured{Object: content}
	gvk, err := identify(u)
	if err != nil {
		return nil, "", err
	}
	var defined *Type
	if gvk.GroupKind() == definitionKind {
		if defined, err = define(u, w); err != nil {
			return nil, "", err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.collectionOf(gvk)
	if err != nil {
		return nil, "", err
	}
	if err := place(u, c.typ); err != nil {
		return nil, "", err
	}
	if s.options.Conform && !w.client {
		c.typ.version(gvk.Version).conform(u.Object)
	}
	if s.options.Namespaces && gvk.GroupKind() == namespaceKind && u.GetDeletionTimestamp() == nil {
		completeNamespace(u)
	}
	after, outcome, err := s.store(c, u, gvk.Version, w)
	if err != nil || outcome == Unchanged {
		return after, outcome, err
	}
	if gvk.GroupKind() == definitionKind {
		err = s.redefine(u.GetName(), defined, w)
	}
	if l := (leaving{gvk.GroupKind(), u.GetName()}); w.client && u.GetDeletionTimestamp() != nil &&
		(l.kind == definitionKind || holdsContent(u)) {
		s.sweep(l, w)
	}
	return after, outcome, err
}

// collectionOf returns the collection of a kind. The error is an *UnknownTypeError.
func (s *Storage) collectionOf(gvk schema.GroupVersionKind) (*collection, error) {
	c := s.mu.kinds[gvk.GroupKind()]
	if c == nil {
		return nil, &UnknownTypeError{GVK: gvk}
	}
	if c.typ.version(gvk.Version) == nil {
		unknown := &UnknownTypeError{GVK: gvk}
		for _, v := range c.typ.Versions {
			unknown.Served = append(unknown.Served, v.Name)
		}
		return nil, unknown
	}
	return c, nil
}

// identify checks what every object must have.
func identify(u *unstructured.Unstructured) (schema.GroupVersionKind, error) {
	for _, field := range []string{"apiVersion", "kind"} {
		if text, ok := u.Object[field].(string); !ok || text == "" {
			return schema.GroupVersionKind{}, fmt.Errorf("%s is missing or no string", field)
		}
	}
	gv, err := schema.ParseGroupVersion(u.GetAPIVersion())
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("apiVersion: %w", err)
	}
	gvk := gv.WithKind(u.GetKind())
	metadata, ok := u.Object["metadata"].(map[string]any)
	if !ok {
		return gvk, errors.New("metadata is missing or no object")
	}
	if name, ok := metadata["name"].(string); !ok || name == "" || strings.Contains(name, "/") {
		return gvk, fmt.Errorf("metadata.name is %#v: want a name", metadata["name"])
	}
	if namespace, ok := metadata["namespace"].(string); metadata["namespace"] != nil &&
		(!ok || strings.Contains(namespace, "/")) {
		return gvk, fmt.Errorf("metadata.namespace is %#v: want a name", metadata["namespace"])
	}
	// What clients decode strictly must have its form, or one object makes a whole list unreadable.
	if _, err := partial(u.Object); err != nil {
		return gvk, err
	}
	return gvk, nil
}

// place checks that the object lives where its type does.
func place(u *unstructured.Unstructured, t Type) error {
	switch {
	case t.Namespaced && u.GetNamespace() == "":
		u.SetNamespace(metav1.NamespaceDefault)
	case !t.Namespaced && u.GetNamespace() != "":
		return fmt.Errorf("it is in the namespace %q, but %s are cluster-scoped", u.GetNamespace(),
			t.GroupResource())
	}
	return nil
}

// store puts an object into the collection, unless it is there already, and returns its state.
func (s *Storage) store(c *collection, u *unstructured.Unstructured, version string,
	w write) (*object, Outcome, error) {
	key := objectKey(u.GetNamespace(), u.GetName())
	before := c.objects[key]
	if !w.basis.holds(before) {
		return nil, "", errChanged
	}
	if before == nil && w.client {
		if err := s.admit(c, u.GetNamespace(), u.GetName()); err != nil {
			return nil, "", err
		}
	}
	next := s.mu.version + 1
	if before != nil {
		same, err := s.sameAs(c.typ, before, u, w)
		if err != nil {
			return nil, "", err
		}
		if same && before.stored == version {
			return before, Unchanged, nil
		}
	} else if s.options.Stamp && !w.client {
		stamp(u, c.typ, w.now)
	}
	kept, ok := parseVersion(u.GetResourceVersion())
	if w.restore && ok {
		// The version of the whole goes up in any case: who has listed already must not go on from there.
		s.mu.version = max(s.mu.version+1, kept)
		next = kept
	} else {
		s.mu.version = next
		u.SetResourceVersion(strconv.FormatUint(next, 10))
	}
	body, err := encodeBody(u.Object)
	if err != nil {
		return nil, "", err
	}
	after := &object{key: key, version: next, stored: version, labels: newLabelSet(u.GetLabels()), body: body}
	if w.restore && s.options.Compress {
		s.keep(after, body)
	}
	c.put(key, after)
	if w.restore {
		c.forget(s.mu.version)
	} else {
		c.record(Change{ResourceVersion: next, Before: asObject(before), After: after}, s.options.History)
	}
	if before != nil {
		return after, Updated, nil
	}
	return after, Added, nil
}

// sameAs completes u with what the stored state has beyond it, and says whether nothing else differs.
func (s *Storage) sameAs(t Type, before *object, u *unstructured.Unstructured, w write) (bool, error) {
	wanted := u.GetResourceVersion()
	was, err := decode(before)
	if err != nil {
		return false, err
	}
	old := &unstructured.Unstructured{Object: was}
	if s.options.Stamp && !w.client {
		restamp(u, old, t)
	}
	u.SetResourceVersion(old.GetResourceVersion())
	body, err := encodeBody(u.Object)
	if err != nil {
		return false, err
	}
	u.SetResourceVersion(wanted)
	known, err := before.JSON()
	return err == nil && bytes.Equal(body, known), err
}

// stamp gives a new object what a server would.
func stamp(u *unstructured.Unstructured, t Type, now time.Time) {
	if u.GetUID() == "" {
		u.SetUID(uuid.NewUUID())
	}
	if created := u.GetCreationTimestamp(); created.IsZero() {
		u.SetCreationTimestamp(metav1.NewTime(now))
	}
	if u.GetGeneration() == 0 && !t.Rules.NoGeneration {
		u.SetGeneration(1)
	}
}

// restamp keeps what a server would when an object is written anew.
func restamp(u, old *unstructured.Unstructured, t Type) {
	if u.GetUID() == "" {
		u.SetUID(old.GetUID())
	}
	if created := u.GetCreationTimestamp(); created.IsZero() {
		u.SetCreationTimestamp(old.GetCreationTimestamp())
	}
	if u.GetGeneration() == 0 && !t.Rules.NoGeneration {
		u.SetGeneration(old.GetGeneration())
		if !sameSpec(u.Object, old.Object) {
			u.SetGeneration(old.GetGeneration() + 1)
		}
	}
}

// sameSpec compares all but metadata and status.
func sameSpec(a, b map[string]any) bool {
	strip := func(from map[string]any) map[string]any {
		rest := map[string]any{}
		for key, value := range from {
			if key != "apiVersion" && key != "metadata" && key != "status" {
				rest[key] = value
			}
		}
		return rest
	}
	return reflect.DeepEqual(strip(a), strip(b))
}

// maxKept is the largest resource version that is kept: from there on an int64, which tokens and clients use,
// must still have room for all that is given away later.
const maxKept = 1 << 62

// parseVersion reads a resource version that can be kept: a number that is written as the storage would.
func parseVersion(text string) (uint64, bool) {
	version, err := strconv.ParseUint(text, 10, 63)
	return version, err == nil && version > 0 && version <= maxKept && strconv.FormatUint(version, 10) == text
}
