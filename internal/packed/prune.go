package packed

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// Step is a map key, or each element of a list. Key and Each exclude each other.
type Step struct {
	Key  string
	Each bool
}

// String returns the path in dot notation, such as .spec.items[*].name.
func (p Path) String() string {
	var b strings.Builder
	for _, step := range p {
		switch {
		case step.Each:
			b.WriteString("[*]")
		case strings.ContainsAny(step.Key, `.[]*'"/\ `) || step.Key == "":
			fmt.Fprintf(&b, "[%q]", step.Key)
		default:
			b.WriteString("." + step.Key)
		}
	}
	return b.String()
}

// Pruner removes the fields that a Prune selects. It is immutable. A nil *Pruner removes nothing.
type Pruner struct{ root *pruneNode }

// pruneNode selects what to remove from a value.
type pruneNode struct {
	keys []string
	// children has an element for each key; nil removes the key.
	children []*pruneNode
	// each applies to the elements of a list. Optional.
	each *pruneNode
	// keepOnly, if set, removes every other key.
	keepOnly string
}

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
	root := &pruneNode{}
	for _, path := range paths {
		if err := checkPath(path); err != nil {
			return nil, fmt.Errorf("remove field %q: %w", path, err)
		}
		if path.String() == ".metadata.annotations" {
			root.child("metadata").child("annotations").keepOnly = metav1.InitialEventsAnnotationKey
			continue
		}
		root.add(path)
	}
	return &Pruner{root: root}, nil
}

// protectedPaths are the fields that the cache needs.
var protectedPaths = []string{
	".apiVersion", ".kind", ".metadata", ".metadata.name", ".metadata.namespace", ".metadata.uid",
	".metadata.resourceVersion",
	Path{{Key: "metadata"}, {Key: "annotations"}, {Key: metav1.InitialEventsAnnotationKey}}.String(),
}

func checkPath(path Path) error {
	if len(path) == 0 {
		return errors.New("the path is empty")
	}
	if path[len(path)-1].Each {
		return errors.New("the path must end in a key")
	}
	for _, step := range path {
		if step.Each && step.Key != "" {
			return errors.New("a step is a key or each element, not both")
		}
	}
	text := path.String()
	for _, needed := range protectedPaths {
		if text == needed {
			return errors.New("the field identifies the object")
		}
	}
	return nil
}

func (b *pruneNode) add(path Path) {
	for _, step := range path[:len(path)-1] {
		switch {
		case !step.Each:
			if b = b.child(step.Key); b == nil {
				return // an ancestor is already removed
			}
		case b.each == nil:
			b.each = &pruneNode{}
			fallthrough
		default:
			b = b.each
		}
	}
	last := path[len(path)-1].Key
	if i := slices.Index(b.keys, last); i >= 0 {
		b.children[i] = nil
		return
	}
	b.keys, b.children = append(b.keys, last), append(b.children, nil)
}

// child returns the branch of a key's value, or nil if the key is removed entirely.
func (b *pruneNode) child(key string) *pruneNode {
	i := slices.Index(b.keys, key)
	if i < 0 {
		i = len(b.keys)
		b.keys, b.children = append(b.keys, key), append(b.children, &pruneNode{})
	}
	return b.children[i]
}

// member reports whether to remove something from the value of a key. A nil branch then removes the value.
func (b *pruneNode) member(key []byte) (below *pruneNode, found bool) {
	if b == nil {
		return nil, false
	}
	if b.keepOnly != "" {
		return nil, b.keepOnly != string(key)
	}
	for i, k := range b.keys {
		if k == string(key) {
			return b.children[i], true
		}
	}
	return nil, false
}

// Apply removes the fields from u in place.
func (p *Pruner) Apply(u *unstructured.Unstructured) {
	if p != nil {
		p.root.apply(u.Object)
	}
}

func (b *pruneNode) apply(value any) {
	switch value := value.(type) {
	case map[string]any:
		if b.keepOnly != "" {
			maps.DeleteFunc(value, func(key string, _ any) bool { return key != b.keepOnly })
			return
		}
		for i, key := range b.keys {
			if b.children[i] == nil {
				delete(value, key)
			} else {
				b.children[i].apply(value[key])
			}
		}
	case []any:
		if b.each != nil {
			for _, element := range value {
				b.each.apply(element)
			}
		}
	}
}
