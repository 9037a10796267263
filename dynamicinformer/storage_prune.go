package dynamicinformer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/packed"
)

// Prune says what to leave out of objects when they are stored. It costs next to nothing, unlike a Transform,
// for which packed objects have to be decoded. What is left out is as if it had been deleted: a map that
// becomes empty stays. The zero value, with nil slices, means that it is not set, which in the end comes to
// nothing; slices that are empty and not nil are set, to nothing.
type Prune struct {
	// Presets are well-known parts.
	Presets []PrunePreset

	// Paths are fields: keys after dots, or in brackets with quotes, and [*] for each element of a list:
	//
	//	.status.conditions[*].message
	//	.metadata.labels["example.com/build"]
	//
	// A path ends in a key. What identifies an object (its kind, name, namespace, UID and resource version)
	// cannot be left out.
	Paths []string

	// Fields are paths that are taken apart already, for programs: keys may have any characters in them.
	Fields [][]PruneStep

	// Annotations are keys of annotations.
	Annotations []string
}

// PruneStep is a step of a path: the key of a map or, with Each, which goes without a key, every element of a
// list.
type PruneStep struct {
	Key  string
	Each bool
}

// PrunePreset is a well-known part of objects.
type PrunePreset string

const (
	// PruneManagedFields is metadata.managedFields, often more than half of an object, which readers of a
	// cache hardly ever need.
	PruneManagedFields PrunePreset = "managedFields"
	// PruneLastApplied is the annotation in which kubectl apply keeps a copy of the whole object.
	PruneLastApplied PrunePreset = "lastApplied"
)

func (p Prune) isSet() bool {
	return p.Presets != nil || p.Paths != nil || p.Fields != nil || p.Annotations != nil
}

// Validate returns what is wrong with the paths and presets; nil: nothing.
func (p Prune) Validate() error {
	_, err := p.pruner()
	return err
}

// Apply leaves the same out of a decoded object, which it changes. It fails where Validate does.
func (p Prune) Apply(object *unstructured.Unstructured) error {
	pruner, err := p.pruner()
	if err != nil {
		return err
	}
	if pruner != nil {
		pruner.Apply(object)
	}
	return nil
}

// pruner returns what does the pruning, or nil where there is nothing to do.
func (p Prune) pruner() (*packed.Pruner, error) {
	prune := packed.Prune{Annotations: slices.Clone(p.Annotations)}
	for _, preset := range p.Presets {
		switch preset {
		case PruneManagedFields:
			prune.ManagedFields = true
		case PruneLastApplied:
			prune.LastApplied = true
		default:
			return nil, fmt.Errorf("Prune: there is no preset %q; there are %s and %s", preset,
				PruneManagedFields, PruneLastApplied)
		}
	}
	var err error
	if prune.Paths, err = p.paths(); err != nil {
		return nil, err
	}
	pruner, err := packed.NewPruner(prune)
	if err != nil {
		return nil, fmt.Errorf("Prune: %w", err)
	}
	return pruner, nil
}

// paths returns Paths and Fields.
func (p Prune) paths() ([]packed.Path, error) {
	var paths []packed.Path
	for _, text := range p.Paths {
		path, err := parsePrunePath(text)
		if err != nil {
			return nil, fmt.Errorf("Prune: the path %q: %w", text, err)
		}
		paths = append(paths, path)
	}
	for _, field := range p.Fields {
		path := make(packed.Path, len(field))
		for i, step := range field {
			path[i] = packed.Step(step)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// parsePrunePath reads a path as Prune.Paths describes.
func parsePrunePath(text string) (packed.Path, error) {
	var path packed.Path
	rest := text
	if rest != "" && rest[0] != '.' && rest[0] != '[' {
		rest = "." + rest
	}
	for rest != "" {
		var step packed.Step
		var err error
		switch {
		case strings.HasPrefix(rest, "[*]"):
			step, rest = packed.Step{Each: true}, rest[len("[*]"):]
		case rest[0] == '[':
			step.Key, rest, err = cutQuoted(rest[1:])
		case rest[0] == '.':
			end := strings.IndexAny(rest[1:], ".[") + 1
			if end == 0 {
				end = len(rest)
			}
			step.Key, rest = rest[1:end], rest[end:]
			if step.Key == "" || strings.ContainsAny(step.Key, `*]"'`) {
				err = fmt.Errorf("%q is not a key", step.Key)
			}
		default:
			err = errors.New("after a bracket comes a dot or another bracket")
		}
		if err != nil {
			return nil, err
		}
		path = append(path, step)
	}
	return path, nil
}

// cutQuoted takes a quoted key and a closing bracket off the front.
func cutQuoted(text string) (key, rest string, err error) {
	if text == "" || text[0] != '"' && text[0] != '\'' {
		return "", "", errors.New(`in brackets there is * or a key in quotes`)
	}
	key, rest, found := strings.Cut(text[1:], text[:1]+"]")
	if !found {
		return "", "", errors.New("a bracket is not closed")
	}
	return key, rest, nil
}

// StripManagedFields is a cache.TransformFunc that drops metadata.managedFields, which is often more
// than half of an object and which readers of a cache hardly ever need. What is not an object with
// metadata (a tombstone, say) passes unchanged. It never fails.
func StripManagedFields(obj any) (any, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return obj, nil
	}
	if len(accessor.GetManagedFields()) > 0 {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}
