package dynamicinformer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/internal/packed"
	"k8s.io/client-go/tools/cache"
)

// Keep selects the fields to store. All others are dropped before Transform, at the cost of Prune, so that
// memory follows the fields that a program reads (TestKeep). Readers see a dropped field as absent: never
// write such an object back with an update. A query that reads one fails (Informer.Drops). Nil Paths are
// unset; empty ones keep only the fields of every object.
//
// Every object keeps its kind, name, namespace, UID, resource version, generation, labels, owner references,
// finalizers, and the times of its creation and deletion. The maps and lists around a kept field remain, and
// so do values that do not have the type that a path expects.
type Keep struct {
	// Paths are the paths of fields, as in Prune.Paths. A field is kept with everything below it:
	//
	//	.spec.containers[*].image
	//	.status.phase
	Paths []string
}

var errKeepAndPrune = errors.New("Keep and Prune are both set: set only Keep, which drops all fields that it does not list")

func (k Keep) isSet() bool { return k.Paths != nil }

// pruner returns the compiled Keep.
func (k Keep) pruner() (*packed.Pruner, error) {
	paths, err := parsePaths(k.Paths)
	if err != nil {
		return nil, fmt.Errorf("Keep: %w", err)
	}
	pruner, err := packed.NewKeepList(paths)
	if err != nil {
		return nil, fmt.Errorf("Keep: %w", err)
	}
	return pruner, nil
}

// key identifies the kept fields of a valid Keep; empty if it is unset.
func (k Keep) key() string {
	if !k.isSet() {
		return ""
	}
	paths, _ := parsePaths(k.Paths)
	return fmt.Sprintf(" keep %q", textsOf(paths))
}

// pruner returns the fields to drop and the transform. StripManagedFields becomes a Prune, because that does
// not decode objects.
func (o ResourceOptions) pruner() (*packed.Pruner, cache.TransformFunc, error) {
	strips := isStripManagedFields(o.Transform)
	if o.Keep.isSet() {
		pruner, err := o.Keep.pruner()
		if strips && pruner.Drops(packed.Path{{Key: "metadata"}, {Key: "managedFields"}}, false) {
			return pruner, nil, err
		}
		return pruner, o.Transform, err
	}
	if !strips {
		pruner, err := o.Prune.pruner()
		return pruner, o.Transform, err
	}
	prune := o.Prune
	prune.Presets = append(slices.Clone(prune.Presets), PruneManagedFields)
	pruner, err := prune.pruner()
	return pruner, nil, err
}

// Drops reports whether the cache may lack values that a path leads to, because Prune, Keep or
// StorageMetadata drop them. The path is as in Prune.Paths; in addition, .* selects every value of a map or
// list, and .. at the end selects all values below. With a Transform, which can add fields, it returns false.
// It returns true for an invalid path.
func (i *Informer) Drops(path string) bool {
	pruner, transform := i.objectOptions.Packer.Pruner(), i.options.Transform
	if pruner == nil && !i.objectOptions.Metadata || transform != nil && !isStripManagedFields(transform) {
		return false
	}
	path, below := strings.CutSuffix(path, "..")
	steps, err := parsePath(path)
	return err != nil || pruner.Drops(steps, below) ||
		i.objectOptions.Metadata && packed.MetadataOnly.Drops(steps, below)
}

// KeptFields returns the paths of Keep, or .metadata with StorageMetadata. It returns nil if the cache has
// all fields, except those of Prune.
func (i *Informer) KeptFields() []string {
	if i.objectOptions.Metadata && !i.options.Keep.isSet() {
		return []string{".metadata"}
	}
	return slices.Clone(i.options.Keep.Paths)
}

// EstimateKeep returns the average size of an object in bytes in storage mode packed: with the fields of the
// snapshot, and with the fields that keep selects. It packs up to sample objects. The sizes of an empty
// snapshot are 0. It returns an error for an invalid keep, and for a damaged object.
func (s *Snapshot) EstimateKeep(keep Keep, sample int) (size, keptSize int, err error) {
	pruner, err := keep.pruner()
	if err != nil {
		return 0, 0, err
	}
	whole, kept, n := packed.NewPacker(nil), packed.NewPacker(pruner), 0
	err = s.AllJSON(func(_ string, text []byte) error {
		if n == sample {
			return errSampled
		}
		object, err := whole.Pack(text)
		if err != nil {
			return err
		}
		projection, err := kept.Pack(text)
		if err != nil {
			return err
		}
		n, size, keptSize = n+1, size+object.Size(), keptSize+projection.Size()
		return nil
	})
	if err != nil && !errors.Is(err, errSampled) {
		return 0, 0, err
	}
	n = max(n, 1)
	return size / n, keptSize / n, nil
}

var errSampled = errors.New("enough objects are packed")
