package filesource

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/readapi"
	"github.com/crdcache/crdcache/snapshot"
)

// ReadFiles is manifest.ReadFiles with support for snapshots. selects chooses the types read from snapshots.
// Nil means all.
func ReadFiles(ctx context.Context, options manifest.ReadOptions, selects func(snapshot.Type) bool,
	take manifest.ObjectHandler) error {
	snapshots := map[string]func() (*snapshot.File, error){}
	for _, path := range options.Paths {
		source := &Options{In: options.In}
		open, err := snapshotAt(ctx, path, source)
		options.In = source.In
		if err == nil && open != nil { // otherwise the manifest reader reports the error
			snapshots[path] = open
		}
	}
	if len(snapshots) == 0 {
		return manifest.ReadFiles(ctx, options, take)
	}
	var ended error
	problem := func(object *unstructured.Unstructured, report func(error)) error {
		ended = take(object, report)
		return ended
	}
	var failed []error
	for _, path := range options.Paths {
		fileOptions := options
		fileOptions.Paths = []string{path}
		var err error
		if open := snapshots[path]; open != nil {
			err = readSnapshot(ctx, (&manifest.File{Path: path}).Name(), open, selects, problem)
		} else {
			err = manifest.ReadFiles(ctx, fileOptions, problem)
		}
		switch {
		case ended != nil:
			return ended
		case ctx.Err() != nil:
			return ctx.Err()
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// readSnapshot passes the objects of a snapshot to take. The error includes requested types that could not
// be saved; readSnapshot continues with the other types.
func readSnapshot(ctx context.Context, name string, open func() (*snapshot.File, error),
	selects func(snapshot.Type) bool, take manifest.ObjectHandler) error {
	file, err := open()
	if err != nil {
		return err
	}
	defer file.Close()
	var failed []error
	report := func(err error) { failed = append(failed, &manifest.Problem{File: name, Err: err}) }
	for _, saved := range file.Contents().Types {
		if selects != nil && !selects(saved.Type) {
			continue
		}
		gr := saved.GVR().GroupResource()
		if saved.Missing != nil && !saved.NotRequested {
			report(fmt.Errorf("%s was not saved: %s", gr, saved.Missing.Message))
		}
		for record, err := range file.Objects(gr).All {
			if err != nil {
				return errors.Join(append(failed, fmt.Errorf("%s: %w", name, err))...)
			}
			object := &unstructured.Unstructured{}
			if err := utiljson.Unmarshal(record.JSON, &object.Object); err != nil {
				report(fmt.Errorf("%s %s: %w", gr, record.Key, err))
				continue
			}
			// a record has no apiVersion
			object.SetGroupVersionKind(saved.GroupVersion().WithKind(saved.Kind))
			if err := take(object, report); err != nil || ctx.Err() != nil {
				return errors.Join(append(failed, err)...)
			}
		}
	}
	return errors.Join(failed...)
}

// knownType returns the type of a built-in kind in one version. Its short names, categories and scope cannot
// be inferred from objects.
func knownType(gvk schema.GroupVersionKind) (readapi.Type, bool) {
	k, ok := naming.FindBuiltin(gvk.Group, gvk.Kind, "")
	if !ok {
		return readapi.Type{}, false
	}
	return readapi.Type{
		Group: k.Group, Namespaced: k.Has(naming.Namespaced),
		Names: crd.Names{Plural: k.Plural, Kind: k.Kind, ShortNames: k.ShortNames(),
			Categories: k.Categories()},
		Versions: []readapi.Version{{
			Name: gvk.Version, Subresources: []string{"status"}, SelectableFields: k.SelectableFields(),
		}},
	}, true
}

// inferType returns a type for a kind without a definition.
func inferType(gvk schema.GroupVersionKind, namespaced bool) readapi.Type {
	plural, singular := meta.UnsafeGuessKindToResource(gvk)
	return readapi.Type{
		Group: gvk.Group, Namespaced: namespaced,
		Names:    crd.Names{Plural: plural.Resource, Singular: singular.Resource, Kind: gvk.Kind},
		Versions: []readapi.Version{{Name: gvk.Version}},
	}
}
