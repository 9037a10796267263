package packed

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/jsonpath"
)

// LastApplied is the annotation in which kubectl apply stores a copy of the object.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Prune selects fields to remove from objects. The zero value removes nothing. The result is the same as
// deleting the fields from the decoded object: a map that becomes empty remains.
type Prune struct {
	// ManagedFields removes metadata.managedFields.
	ManagedFields bool
	// LastApplied removes the annotation LastApplied.
	LastApplied bool
	// Annotations are the keys of further annotations to remove.
	Annotations []string
	// Paths are further fields to remove. The path metadata.annotations removes all annotations except the
	// one that marks the end of a watch's initial events, and leaves a map.
	Paths []Path
}

// Path leads from the object to a field, one Step at a time.
type Path []Step

// Step is a map key, each element of a list, or, if Any is set, each value of a map or list. Only paths for
// [Pruner.Drops] have Any. The fields exclude each other.
type Step struct {
	Key       string
	Each, Any bool
}

// String returns the path in dot notation, such as .spec.items[*].name.
func (p Path) String() string {
	steps := make([]jsonpath.Step, len(p))
	for i, step := range p {
		selector := jsonpath.Selector{Name: step.Key}
		switch {
		case step.Each:
			selector.Kind = jsonpath.SelectElements
		case step.Any:
			selector.Kind = jsonpath.SelectMembers
		}
		steps[i].Selectors = []jsonpath.Selector{selector}
	}
	return jsonpath.Read{Steps: steps}.Fields()[0]
}

// Pruner removes the fields that a Prune selects, or that a keep-list does not select. It is immutable. A nil
// *Pruner removes nothing.
type Pruner struct {
	root *pruneNode
	// wholeCondition selects the objects to which wholePruner applies in place of root. Optional.
	wholeCondition *Condition
	wholePruner    *Pruner
	// keptFields are the paths of a keep-list.
	keptFields string
}

// pruneNode selects the fields of a value that are removed or, if keeps is set, retained.
type pruneNode struct {
	keys []string
	// children has an element for each key. Nil selects the whole value of the key.
	children []*pruneNode
	// each applies to the elements of a list. Optional.
	each *pruneNode
	// keeps states that keys are kept and all other keys of a map are removed.
	keeps bool
}

// appliesToMaps reports whether the node changes maps. In a keep-list, a node with each can match a map
// or a list, and leaves maps unchanged.
func (b *pruneNode) appliesToMaps() bool { return len(b.keys) > 0 && (!b.keeps || b.each == nil) }

// NewPruner returns a Pruner, or nil if p removes nothing. It fails for paths that are empty, end in Each, or
// select fields that identify objects.
func NewPruner(p Prune) (*Pruner, error) {
	paths := append([]Path(nil), p.Paths...)
	if p.ManagedFields {
		paths = append(paths, Path{{Key: "metadata"}, {Key: "managedFields"}})
	}
	annotations := p.Annotations
	if p.LastApplied {
		annotations = append([]string{LastApplied}, annotations...)
	}
	for _, key := range annotations {
		paths = append(paths, Path{{Key: "metadata"}, {Key: "annotations"}, {Key: key}})
	}
	if len(paths) == 0 {
		return nil, nil
	}
	root, allAnnotations := &pruneNode{}, false
	for _, path := range paths {
		err := checkShape(path)
		if err == nil && slices.Contains(protectedPaths, path.String()) {
			err = errors.New("the field identifies the object")
		}
		if err != nil {
			return nil, fmt.Errorf("remove field %q: %w", path, err)
		}
		if path.String() == ".metadata.annotations" {
			allAnnotations = true
			continue
		}
		root.add(path)
	}
	if allAnnotations {
		root.child("metadata").replace("annotations", &pruneNode{keeps: true, children: []*pruneNode{nil},
			keys: []string{metav1.InitialEventsAnnotationKey}})
	}
	return &Pruner{root: root}, nil
}

// NewKeepList returns a Pruner that keeps only the values at some paths, with the maps and lists around them,
// and the fields in alwaysKept. If a path expects a map but finds a string or a list, the Pruner keeps that
// value. It fails for paths that are empty or end in Each.
//
// An object that wholeCondition selects keeps all fields except those that wholePruner removes; both can be
// nil. The keep-list includes the fields that wholeCondition reads, and wholePruner must not remove them: the
// condition must select the same objects before and after pruning. It fails if that can read any field.
func NewKeepList(wholeCondition *Condition, wholePruner *Pruner, paths []Path) (*Pruner, error) {
	read, err := wholeCondition.paths()
	if err != nil {
		return nil, err
	}
	root := &pruneNode{keeps: true}
	paths = append(read, paths...)
	for _, path := range paths {
		if err := checkShape(path); err != nil {
			return nil, fmt.Errorf("keep field %q: %w", path, err)
		}
		root.add(path)
	}
	for _, keys := range alwaysKept {
		path := make(Path, len(keys))
		for i, key := range keys {
			path[i] = Step{Key: key}
		}
		root.add(path)
	}
	keptFields := fmt.Sprint(paths)
	return &Pruner{
		root: root, wholeCondition: wholeCondition, wholePruner: wholePruner, keptFields: keptFields,
	}, nil
}

// KeptFields returns the paths of a keep-list, such as [.spec.a .spec.b]; empty for another Pruner.
func (p *Pruner) KeptFields() string {
	if p == nil {
		return ""
	}
	return p.keptFields
}

// alwaysKept are the fields that informers, handlers and garbage collection need.
var alwaysKept = [][]string{
	{"apiVersion"}, {"kind"}, {"metadata", "name"}, {"metadata", "namespace"}, {"metadata", "uid"},
	{"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "creationTimestamp"},
	{"metadata", "deletionTimestamp"}, {"metadata", "deletionGracePeriodSeconds"}, {"metadata", "labels"},
	{"metadata", "ownerReferences"}, {"metadata", "finalizers"},
	{"metadata", "annotations", metav1.InitialEventsAnnotationKey},
}

// Drops reports whether a value at the path can be removed, alone or with an enclosing value. If below is
// set, the removal of a value below it counts as well.
func (p *Pruner) Drops(path Path, below bool) bool { return p != nil && p.root.drops(path, below) }

func (b *pruneNode) drops(path Path, below bool) bool {
	if len(path) == 0 {
		return below
	}
	step, rest := path[0], path[1:]
	switch {
	case (step.Each || step.Any) && b.each != nil && b.each.drops(rest, below):
		return true
	case step.Each || !b.appliesToMaps():
		return false
	case step.Any && b.keeps:
		return true
	case step.Any:
		return slices.ContainsFunc(b.children,
			func(child *pruneNode) bool { return child == nil || child.drops(rest, below) })
	}
	child, found := b.memberChild([]byte(step.Key))
	return found && (child == nil || child.drops(rest, below))
}

// Removes reports whether the value at the path is removed from every object. The path has only keys.
func (p *Pruner) Removes(path Path) bool {
	return p != nil && p.root.removes(path) && (p.wholeCondition == nil || p.wholePruner.Removes(path))
}

func (b *pruneNode) removes(path Path) bool {
	if len(path) == 0 || !b.appliesToMaps() {
		return false
	}
	child, found := b.memberChild([]byte(path[0].Key))
	return found && (child == nil || child.removes(path[1:]))
}

// MetadataOnly keeps the fields of a PartialObjectMetadata.
var MetadataOnly = &Pruner{root: &pruneNode{keeps: true, keys: []string{"apiVersion", "kind", "metadata"},
	children: []*pruneNode{nil, nil, nil}}}

// protectedPaths are the fields that the cache needs.
var protectedPaths = []string{
	".apiVersion", ".kind", ".metadata", ".metadata.name", ".metadata.namespace", ".metadata.uid",
	".metadata.resourceVersion",
	Path{{Key: "metadata"}, {Key: "annotations"}, {Key: metav1.InitialEventsAnnotationKey}}.String(),
}

func checkShape(path Path) error {
	if len(path) == 0 {
		return errors.New("the path is empty")
	}
	if path[len(path)-1].Each {
		return errors.New("the path must end in a key")
	}
	for _, step := range path {
		if step.Any {
			return errors.New("* is not a key")
		}
		if step.Each && step.Key != "" {
			return errors.New("a step is a key or each element, not both")
		}
	}
	return nil
}

// add selects the value at a path.
func (b *pruneNode) add(path Path) {
	for _, step := range path[:len(path)-1] {
		switch {
		case !step.Each:
			if b = b.child(step.Key); b == nil {
				return // an ancestor is already removed or kept
			}
		case b.each == nil:
			b.each = &pruneNode{keeps: b.keeps}
			fallthrough
		default:
			b = b.each
		}
	}
	b.replace(path[len(path)-1].Key, nil)
}

func (b *pruneNode) replace(key string, child *pruneNode) {
	if i := slices.Index(b.keys, key); i >= 0 {
		b.children[i] = child
		return
	}
	b.keys, b.children = append(b.keys, key), append(b.children, child)
}

// child returns the node of a key's value, or nil if the key is removed or kept entirely.
func (b *pruneNode) child(key string) *pruneNode {
	if !slices.Contains(b.keys, key) {
		b.replace(key, &pruneNode{keeps: b.keeps})
	}
	return b.children[slices.Index(b.keys, key)]
}

// memberChild returns the node for the value of a key. If found, the value loses fields; all if child is nil.
func (b *pruneNode) memberChild(key []byte) (child *pruneNode, found bool) {
	if b == nil {
		return nil, false
	}
	for i, k := range b.keys {
		if k == string(key) {
			return b.children[i], !b.keeps || b.children[i] != nil
		}
	}
	return nil, b.keeps
}

// Apply removes the fields from u in place.
func (p *Pruner) Apply(u *unstructured.Unstructured) {
	switch {
	case p == nil:
	case p.wholeCondition.matches(u):
		p.wholePruner.Apply(u)
	default:
		p.root.apply(u.Object)
	}
}

func (b *pruneNode) apply(value any) {
	switch value := value.(type) {
	case map[string]any:
		if !b.appliesToMaps() {
			return
		}
		for i, key := range b.keys {
			if child := b.children[i]; child != nil {
				child.apply(value[key])
			} else if !b.keeps {
				delete(value, key)
			}
		}
		if b.keeps {
			maps.DeleteFunc(value, func(key string, _ any) bool { return !slices.Contains(b.keys, key) })
		}
	case []any:
		if b.each != nil {
			for _, element := range value {
				b.each.apply(element)
			}
		}
	}
}
