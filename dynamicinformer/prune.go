package dynamicinformer

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/packed"
)

// Prune selects fields to drop from objects before they are stored. It costs almost nothing, because it
// does not decode packed objects as a Transform does. Readers see a dropped field as absent. A map that
// loses all keys is empty then. The zero value, in which all slices are nil, is unset. A Prune with an
// empty non-nil slice drops nothing, and overrides less specific options.
type Prune struct {
	// Presets are well-known fields.
	Presets []PrunePreset

	// Paths are the paths of fields, in the language of the paths of index configs. A key is written after a
	// dot, or in brackets and quotes. [*] selects each element of a list:
	//
	//	.status.conditions[*].message
	//	.metadata.labels["example.com/build"]
	//
	// A path ends in a key. Kind, name, namespace, UID and resource version cannot be dropped.
	Paths []string

	// Annotations are keys of annotations.
	Annotations []string
}

// PrunePreset names a well-known field.
type PrunePreset string

const (
	// PruneManagedFields drops metadata.managedFields, which is often more than half of an object.
	PruneManagedFields PrunePreset = "ManagedFields"
	// PruneLastApplied drops the annotation with the copy of the object that kubectl apply stores.
	PruneLastApplied PrunePreset = "LastApplied"
)

func (p Prune) isSet() bool { return p.Presets != nil || p.Paths != nil || p.Annotations != nil }

// Validate returns an error if a path or preset is invalid.
func (p Prune) Validate() error {
	_, err := p.pruner()
	return err
}

// Apply drops the fields from a decoded object, which it changes. It returns the error of Validate.
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

// pruner returns the compiled Prune, or nil if it drops nothing.
func (p Prune) pruner() (*packed.Pruner, error) {
	prune := packed.Prune{Annotations: slices.Clone(p.Annotations)}
	for _, preset := range p.Presets {
		switch preset {
		case PruneManagedFields:
			prune.ManagedFields = true
		case PruneLastApplied:
			prune.LastApplied = true
		default:
			return nil, fmt.Errorf("Prune: unknown preset %q: use %s or %s", preset,
				PruneManagedFields, PruneLastApplied)
		}
	}
	var err error
	if prune.Paths, err = parsePaths(p.Paths); err != nil {
		return nil, fmt.Errorf("Prune: %w", err)
	}
	pruner, err := packed.NewPruner(prune)
	if err != nil {
		return nil, fmt.Errorf("Prune: %w", err)
	}
	return pruner, nil
}

// parsePaths returns the paths of Prune or Keep.
func parsePaths(texts []string) ([]packed.Path, error) {
	var paths []packed.Path
	for _, text := range texts {
		path, err := packed.ParsePath(text)
		if err != nil {
			return nil, fmt.Errorf("path %q: %w", text, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// textsOf returns the sorted texts of paths.
func textsOf(paths []packed.Path) []string {
	texts := naming.Texts(paths, func(path packed.Path) string { return fmt.Sprintf("%q", path) })
	slices.Sort(texts)
	return texts
}
