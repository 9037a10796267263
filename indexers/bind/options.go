package bind

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// Options adjust a Binding. The zero value is usable.
type Options struct {
	// Compression is for resources whose storage mode is compressed or adaptive, which require it; package
	// storage/s2 has one.
	Compression dynamicinformer.Compression
	// OnError is told of types that turned up later and could not be bound. Default: nobody is.
	OnError func(error)
}

// ResourceOptions gives the options of an informer for a resource, without its indexes. What the config
// leaves open is not set.
func (o Options) ResourceOptions(r *indexers.Resource) (dynamicinformer.ResourceOptions, error) {
	out := dynamicinformer.ResourceOptions{Namespaces: namespaces(r.Namespaces),
		Prune: prune(r.EffectivePrune())}
	fail := func(err error) (dynamicinformer.ResourceOptions, error) {
		return dynamicinformer.ResourceOptions{}, fmt.Errorf("resource %q: %w", r.Name, err)
	}
	if r.Storage.Mode != "" {
		if err := out.Storage.Mode.UnmarshalText([]byte(r.Storage.Mode)); err != nil {
			return fail(err)
		}
		switch out.Storage.Mode {
		case dynamicinformer.StorageCompressed, dynamicinformer.StorageAdaptive:
			if o.Compression == nil {
				return fail(
					fmt.Errorf("storage mode %s needs a compression: set bind.Options.Compression, to s2.New(s2.Options{}) of package storage/s2 for example", r.Storage.Mode))
			}
			out.Storage.Compression = o.Compression
		}
	}
	out.LabelSelector, out.FieldSelector = r.LabelSelector(), r.FieldSelector()
	if r.Match.Versions != "" {
		out.Versions = dynamicinformer.PreferredVersion()
	}
	return out, nil
}

// namespaces says by names what can be said so: then nothing beyond them is asked for.
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
	var names []string
	for _, name := range n.Include {
		if n.Matches(name) {
			names = append(names, name)
		}
	}
	if names == nil { // all that is included is excluded
		return dynamicinformer.MatchingNamespaces(n.Include, n.Exclude)
	}
	return dynamicinformer.InNamespaces(names...)
}

func prune(p indexers.Prune) dynamicinformer.Prune {
	out := dynamicinformer.Prune{Annotations: p.RemoveAnnotations}
	for _, preset := range p.Presets {
		out.Presets = append(out.Presets, dynamicinformer.PrunePreset(preset))
	}
	for _, path := range p.Remove {
		out.Fields = append(out.Fields, field(path))
	}
	return out
}

// field takes a path apart.
func field(p *jsonpath.Path) []dynamicinformer.PruneStep {
	var steps []dynamicinformer.PruneStep
	for _, step := range p.Steps() {
		selector := step.Selectors[0]
		steps = append(steps, dynamicinformer.PruneStep{Key: selector.Name,
			Each: selector.Kind == jsonpath.SelectElements})
	}
	return steps
}
