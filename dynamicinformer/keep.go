package dynamicinformer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/packed"
	"k8s.io/apimachinery/pkg/labels"
)

// Keep selects the fields to store. It drops all other fields before Transform, as cheaply as Prune
// does, so that memory depends on the fields that a program reads (TestKeep). Readers see a dropped
// field as absent: never write a reduced object back with an update (Informer.IsWhole,
// Informer.GetLive). A query that reads a dropped field fails (Informer.Drops). Empty Paths keep only
// the fields that every object keeps. Keep is unset if Paths are nil and no other field is set.
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

	// WholeLabels and WholeWhen select the objects that keep all fields. An object must match each of them
	// that is set. WholeWhen is a condition as in configs, such as @.spec.paused == true. Every object keeps
	// the fields that it reads. The update event by which an object starts or stops to match has the old
	// object in its old form (TestKeepWhole). They cannot be combined with StorageMetadata, which has no
	// whole objects, or with Transform, which could change fields that the condition reads. Default: none.
	WholeLabels labels.Selector
	WholeWhen   string
}

// keepsWholeObjects reports whether some objects keep all fields.
func (k Keep) keepsWholeObjects() bool { return k.WholeLabels != nil || k.WholeWhen != "" }

// condition returns the compiled condition on whole objects; nil if it is unset.
func (k Keep) condition() (*packed.Condition, error) {
	if !k.keepsWholeObjects() {
		return nil, nil
	}
	c := &packed.Condition{Labels: k.WholeLabels}
	var err error
	if k.WholeWhen != "" {
		if c.Filter, err = jsonpath.CompileFilter(k.WholeWhen); err != nil {
			return nil, fmt.Errorf("WholeWhen %q: %w", k.WholeWhen, err)
		}
	}
	return c, nil
}

// conditionKey identifies a valid condition; empty if it is unset.
func (k Keep) conditionKey() string {
	if !k.keepsWholeObjects() {
		return ""
	}
	text := " whole "
	if k.WholeLabels != nil { // the texts of selectors for all and for no objects are equal
		text += fmt.Sprintf("%q %v ", k.WholeLabels.String(), k.WholeLabels.Empty())
	}
	if filter, err := jsonpath.CompileFilter(k.WholeWhen); err == nil {
		text += filter.String()
	}
	return text
}

func (k Keep) isSet() bool { return k.Paths != nil || k.keepsWholeObjects() }

// pruner returns the compiled Keep. wholePruner drops fields of whole objects.
func (k Keep) pruner(wholePruner *packed.Pruner) (*packed.Pruner, error) {
	paths, err := parsePaths(k.Paths)
	if err != nil {
		return nil, fmt.Errorf("Keep: %w", err)
	}
	condition, err := k.condition()
	if err != nil {
		return nil, fmt.Errorf("Keep: %w", err)
	}
	pruner, err := packed.NewKeepList(condition, wholePruner, paths)
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
	return fmt.Sprintf(" keep %q%s", textsOf(paths), k.conditionKey())
}

// pruner returns the fields to drop, or nil.
func (o ResourceOptions) pruner() (*packed.Pruner, error) {
	pruner, err := o.Prune.pruner()
	if err != nil || !o.Keep.isSet() {
		return pruner, err
	}
	pruner, err = o.Keep.pruner(pruner)
	switch {
	case err != nil || !o.Keep.keepsWholeObjects():
	case o.Transform != nil:
		err = errors.New("conditions of Keep on whole objects, and Transform are set: the condition must hold for the same objects after " +
			"Transform; remove one of them")
	case o.Storage.Mode == StorageMetadata:
		err = errors.New("conditions of Keep on whole objects with StorageMetadata, which has no whole objects: " +
			"choose another storage mode")
	}
	return pruner, err
}

// IsWhole reports whether an object of the cache, packed or unstructured, has all fields except those
// of Prune: Keep is unset, or its condition selects the object. It returns false with StorageMetadata.
// IsWhole(nil) reports whether all objects are whole.
func (i *Informer) IsWhole(object any) bool {
	return !i.objectOptions.Metadata && !i.objectOptions.Packer.Pruner().Reduces(object)
}

// KeptFields returns a text that identifies the fields of reduced objects; empty without Keep.
func (i *Informer) KeptFields() string { return i.objectOptions.Packer.Pruner().KeptFields() }

// Drops reports whether the cache may lack values that a path leads to, because Prune, Keep or
// StorageMetadata drop them. The path is as in Prune.Paths; in addition, .* selects every value of a map or
// list, and .. at the end selects all values below. With a Transform, which can add fields, it returns false.
// It returns true for an invalid path.
func (i *Informer) Drops(path string) bool {
	pruner := i.objectOptions.Packer.Pruner()
	if pruner == nil && !i.objectOptions.Metadata || i.options.Transform != nil {
		return false
	}
	path, below := strings.CutSuffix(path, "..")
	steps, err := packed.ParsePath(path)
	return err != nil || pruner.Drops(steps, below) ||
		i.objectOptions.Metadata && packed.MetadataOnly.Drops(steps, below)
}

// StoresOnlyMetadata reports whether the informer stores PartialObjectMetadata, because of StorageMetadata.
func (i *Informer) StoresOnlyMetadata() bool { return i.objectOptions.Metadata }

// EstimateKeep returns the average size of an object in bytes in storage mode packed: with the fields of the
// snapshot, and with the fields that keep selects. It packs up to sample objects. The sizes of an empty
// snapshot are 0. It returns an error for an invalid keep, and for a damaged object.
func (s *Snapshot) EstimateKeep(keep Keep, sample int) (size, keptSize int, err error) {
	pruner, err := keep.pruner(nil)
	if err != nil {
		return 0, 0, err
	}
	wholePacker, keptPacker, n := packed.NewPacker(nil), packed.NewPacker(pruner), 0
	err = s.AllJSON(func(_ string, text []byte) error {
		if n == sample {
			return errSampleComplete
		}
		object, err := wholePacker.Pack(text)
		if err != nil {
			return err
		}
		projection, err := keptPacker.Pack(text)
		if err != nil {
			return err
		}
		n, size, keptSize = n+1, size+object.Size(), keptSize+projection.Size()
		return nil
	})
	if err != nil && !errors.Is(err, errSampleComplete) {
		return 0, 0, err
	}
	n = max(n, 1)
	return size / n, keptSize / n, nil
}

var errSampleComplete = errors.New("enough objects are packed")
