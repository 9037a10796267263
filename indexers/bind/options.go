package bind

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

// Options configure a Binding. The zero value is usable.
type Options struct {
	// Compression is required for resources with storage mode compressed or adaptive; see package storage/s2.
	Compression dynamicinformer.Compression
	// OnError is called when Follow cannot bind a type, and when references cannot be followed. Optional.
	OnError func(error)
}

// ResourceOptions returns the informer options of a resource, without its indexes. Fields that the config
// does not set stay unset.
func (o Options) ResourceOptions(r *indexers.Resource) (dynamicinformer.ResourceOptions, error) {
	out := dynamicinformer.ResourceOptions{Namespaces: namespaces(r.Namespaces)}
	fail := func(err error) (dynamicinformer.ResourceOptions, error) {
		return dynamicinformer.ResourceOptions{}, fmt.Errorf("resource %q: %w", r.Name, err)
	}
	var err error
	if out.Prune, err = pruneOptions(r.EffectivePrune()); err != nil {
		return fail(fmt.Errorf("compile a path to prune: %w", err))
	}
	if k := r.EffectiveKeep(); k.Paths != nil {
		out.Prune = dynamicinformer.Prune{}
		if out.Keep.Paths, err = quotedPaths(k.Paths); err != nil {
			return fail(fmt.Errorf("compile a path to keep: %w", err))
		}
	}
	if r.Storage.Mode != "" {
		if err := out.Storage.Mode.UnmarshalText([]byte(r.Storage.Mode)); err != nil {
			return fail(err)
		}
		switch out.Storage.Mode {
		case dynamicinformer.StorageCompressed, dynamicinformer.StorageAdaptive:
			if o.Compression == nil {
				return fail(fmt.Errorf("storage mode %s needs a compression: set bind.Options.Compression, to s2.New(s2.Options{}) of package storage/s2 for example", r.Storage.Mode))
			}
			out.Storage.Compression = o.Compression
		}
	}
	out.LabelSelector, out.FieldSelector = r.LabelSelector(), r.FieldSelector()
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
	var names []string
	for _, name := range n.Include {
		if n.Matches(name) {
			names = append(names, name)
		}
	}
	if names == nil { // all included namespaces are excluded
		return dynamicinformer.MatchingNamespaces(n.Include, n.Exclude)
	}
	return dynamicinformer.InNamespaces(names...)
}

func pruneOptions(p indexers.Prune) (dynamicinformer.Prune, error) {
	var out dynamicinformer.Prune
	for _, preset := range p.Presets {
		out.Presets = append(out.Presets, dynamicinformer.PrunePreset(preset))
	}
	if len(p.Remove) == 0 {
		return out, nil
	}
	var err error
	out.Paths, err = quotedPaths(p.Remove)
	return out, err
}

// quotedPaths converts paths from the path language. The result is not nil.
func quotedPaths(texts []string) ([]string, error) {
	paths := make([]string, len(texts))
	for i, text := range texts {
		path, err := jsonpath.Compile(text)
		if err != nil {
			return nil, err
		}
		for _, step := range path.Steps() {
			if selector := step.Selectors[0]; selector.Kind == jsonpath.SelectElements {
				paths[i] += "[*]"
			} else {
				paths[i] += fmt.Sprintf("[%q]", selector.Name)
			}
		}
	}
	return paths, nil
}
