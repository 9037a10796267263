package bind

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
)

// Options configure a Binding. The zero value is usable. The functions are called one at a time while
// targets change: they may read the binding, but not change it, and must not block.
type Options struct {
	// Compression is required for resources with storage mode compressed or adaptive; see package
	// adapters/storage/s2.
	Compression dynamicinformer.Compression
	// Schema reads the schema of a type from its CRD, for CEL expressions whose result can depend on it. It
	// returns nil for a type without a CRD. Default: that of the tracker of Follow or Run; without a tracker,
	// indexes with such expressions are left out, see Binding.Problems.
	Schema func(context.Context, schema.GroupVersionResource) (*crd.Schema, error)
	// Accept returns an error if a new target cannot be used. Optional.
	Accept func(*Target) error
	// OnChange is called when a target is added (old is nil), replaced, or removed (changed is nil), before
	// the indexes or the informer of old are released. Optional.
	OnChange func(old, changed *Target)
	// OnProblem is called for each problem, see Binding.Problems, and again when its reason changes.
	// Optional.
	OnProblem func(name string, reason error)
}

// complete sets the defaults.
func (o *Options) complete() {
	if o.Accept == nil {
		o.Accept = func(*Target) error { return nil }
	}
	if o.OnChange == nil {
		o.OnChange = func(_, _ *Target) {}
	}
	if o.OnProblem == nil {
		o.OnProblem = func(string, error) {}
	}
}

// ResourceOptions returns the informer options of a resource, without its indexes. Fields that the config
// does not set stay unset.
func (o Options) ResourceOptions(r *indexers.Resource) (dynamicinformer.ResourceOptions, error) {
	prune := r.EffectivePrune()
	keep := r.EffectiveKeep()
	out := dynamicinformer.ResourceOptions{
		Namespaces:    namespaces(r.Namespaces),
		Prune:         dynamicinformer.Prune{Paths: prune.Remove},
		Keep:          dynamicinformer.Keep{Paths: keep.Paths, WholeWhen: keep.WholeWhen},
		LabelSelector: r.LabelSelector(), FieldSelector: r.FieldSelector(),
	}
	for _, preset := range prune.Presets {
		out.Prune.Presets = append(out.Prune.Presets, dynamicinformer.PrunePreset(preset))
	}
	fail := func(err error) (dynamicinformer.ResourceOptions, error) {
		return dynamicinformer.ResourceOptions{}, fmt.Errorf("resource %q: %w", r.Name, err)
	}
	if keep.WholeLabels != "" {
		var err error
		if out.Keep.WholeLabels, err = labels.Parse(keep.WholeLabels); err != nil {
			return fail(fmt.Errorf("parse keep.whole.labels: %w", err))
		}
	}
	if r.Storage.Mode != "" {
		if err := out.Storage.Mode.UnmarshalText([]byte(r.Storage.Mode)); err != nil {
			return fail(err)
		}
		switch out.Storage.Mode {
		case dynamicinformer.StorageCompressed, dynamicinformer.StorageAdaptive:
			if o.Compression == nil {
				return fail(fmt.Errorf("storage mode %s needs a compression: set bind.Options.Compression, to s2.New() of package adapters/storage/s2 for example", r.Storage.Mode))
			}
			out.Storage.Compression, out.Storage.CompressLists = o.Compression, true
		}
	}
	return out, nil
}

// namespaces uses names instead of patterns if possible: then the informer requests only these namespaces.
func namespaces(n indexers.Namespaces) dynamicinformer.Namespaces {
	patterns := strings.Contains(strings.Join(append(n.Include[:len(n.Include):len(n.Include)], n.Exclude...),
		" "), "*")
	switch {
	case n.All():
		return dynamicinformer.Namespaces{}
	case patterns:
		return dynamicinformer.MatchingNamespaces(n.Include, n.Exclude)
	case len(n.Include) == 0:
		return dynamicinformer.ExceptNamespaces(n.Exclude...)
	}
	isExcluded := func(name string) bool { return !n.Matches(name) }
	names := slices.DeleteFunc(slices.Clone(n.Include), isExcluded)
	if len(names) == 0 { // all included namespaces are excluded
		return dynamicinformer.MatchingNamespaces(n.Include, n.Exclude)
	}
	return dynamicinformer.InNamespaces(names...)
}
