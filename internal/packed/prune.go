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

// LastApplied is the annotation that kubectl apply keeps a copy of the whole object in.
const LastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Prune says what to leave out of objects. The zero value leaves out nothing. What is left out is as if it
// had been deleted from the decoded object: a map that becomes empty stays.
type Prune struct {
	// ManagedFields leaves out metadata.managedFields.
	ManagedFields bool
	// LastApplied leaves out the annotation LastApplied.
	LastApplied bool
	// Annotations are the keys of further annotations to leave out.
	Annotations []string
	// Paths are fields to leave out. The path metadata.annotations leaves out each annotation, and an empty
	// map in their place. The one by which a watch knows the end of its initial events always stays.
	Paths []Path
}

// Path leads to a field: from the object through the value of each step to the next.
type Path []Step

// Step is a key of a map; or with Each, which goes without a key, every element of a list.
type Step struct {
	Key  string
	Each bool
}

// String returns the path in the usual notation.
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

// Pruner leaves out what a Prune says. It never changes. A nil *Pruner leaves out nothing.
type Pruner struct{ root *branch }

// branch is what to leave out of a value.
type branch struct {
	keys []string
	// below belongs to keys; nil: leave it out.
	below []*branch
	// each is what to leave out of the elements of a list; nil: nothing.
	each *branch
	// allBut leaves out every key but this; empty: only keys.
	allBut string
}

// NewPruner returns a Pruner, or nil where there is nothing to leave out. It fails for paths that are empty,
// end in Each, or lead to what identifies objects.
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
	root := &branch{}
	for _, path := range paths {
		if err := checkPath(path); err != nil {
			return nil, fmt.Errorf("leaving out %q: %w", path, err)
		}
		if path.String() == ".metadata.annotations" {
			root.child("metadata").child("annotations").allBut = metav1.InitialEventsAnnotationKey
			continue
		}
		root.add(path)
	}
	return &Pruner{root: root}, nil
}

// identity are the fields that a cache cannot do without.
var identity = []string{
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
	for _, needed := range identity {
		if text == needed {
			return errors.New("the field identifies the object")
		}
	}
	return nil
}

// add grows the branch by a path.
func (b *branch) add(path Path) {
	for _, step := range path[:len(path)-1] {
		switch {
		case !step.Each:
			if b = b.child(step.Key); b == nil {
				return // all of it is left out already
			}
		case b.each == nil:
			b.each = &branch{}
			fallthrough
		default:
			b = b.each
		}
	}
	last := path[len(path)-1].Key
	if i := slices.Index(b.keys, last); i >= 0 {
		b.below[i] = nil
		return
	}
	b.keys, b.below = append(b.keys, last), append(b.below, nil)
}

// child returns the branch of the value of a key, or nil where all of that is left out.
func (b *branch) child(key string) *branch {
	i := slices.Index(b.keys, key)
	if i < 0 {
		i = len(b.keys)
		b.keys, b.below = append(b.keys, key), append(b.below, &branch{})
	}
	return b.below[i]
}

// member returns whether something is to be left out of the value of a key, and what: nil is all of it.
func (b *branch) member(key []byte) (below *branch, found bool) {
	if b == nil {
		return nil, false
	}
	if b.allBut != "" {
		return nil, b.allBut != string(key)
	}
	for i, k := range b.keys {
		if k == string(key) {
			return b.below[i], true
		}
	}
	return nil, false
}

// Apply leaves out the same of a decoded object, which it changes.
func (p *Pruner) Apply(u *unstructured.Unstructured) {
	if p != nil {
		p.root.apply(u.Object)
	}
}

func (b *branch) apply(value any) {
	switch value := value.(type) {
	case map[string]any:
		if b.allBut != "" {
			maps.DeleteFunc(value, func(key string, _ any) bool { return key != b.allBut })
			return
		}
		for i, key := range b.keys {
			if b.below[i] == nil {
				delete(value, key)
			} else {
				b.below[i].apply(value[key])
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
