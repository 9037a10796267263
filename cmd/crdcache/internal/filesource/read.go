package filesource

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/snapshot"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
)

// ReadFiles works like manifest.ReadFiles with support for snapshots. isSelected selects the types that are
// read from snapshots. Nil selects all.
func ReadFiles(ctx context.Context, options manifest.ReadOptions, isSelected func(snapshot.Type) bool,
	handle manifest.ObjectHandler) error {
	snapshots := map[string]func() (*snapshot.File, error){}
	for _, path := range options.Paths {
		sourceOptions := &Options{In: options.In}
		open, err := snapshotOpener(ctx, path, sourceOptions)
		options.In = sourceOptions.In
		if err == nil && open != nil { // otherwise the manifest reader reports the error
			snapshots[path] = open
		}
	}
	if len(snapshots) == 0 {
		return manifest.ReadFiles(ctx, options, handle)
	}
	var handlerErr error
	handleAndRecord := func(object *unstructured.Unstructured, report func(error)) error {
		handlerErr = handle(object, report)
		return handlerErr
	}
	var errs []error
	for _, path := range options.Paths {
		fileOptions := options
		fileOptions.Paths = []string{path}
		var err error
		if open := snapshots[path]; open != nil {
			err = readSnapshot(ctx, (&manifest.File{Path: path}).Name(), open, isSelected, handleAndRecord)
		} else {
			err = manifest.ReadFiles(ctx, fileOptions, handleAndRecord)
		}
		switch {
		case handlerErr != nil:
			return handlerErr
		case ctx.Err() != nil:
			return ctx.Err()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// readSnapshot calls handle for the objects of a snapshot. The error includes requested types that could not
// be saved.
func readSnapshot(ctx context.Context, name string, open func() (*snapshot.File, error),
	isSelected func(snapshot.Type) bool, handle manifest.ObjectHandler) error {
	file, err := open()
	if err != nil {
		return err
	}
	defer file.Close()
	var errs []error
	report := func(err error) { errs = append(errs, &manifest.Problem{File: name, Err: err}) }
	for _, saved := range file.Contents().Types {
		if isSelected != nil && !isSelected(saved.Type) {
			continue
		}
		gr := saved.GVR().GroupResource()
		if saved.Missing != nil && !saved.NotRequested {
			report(fmt.Errorf("%s was not saved: %s", gr, saved.Missing.Message))
		}
		for record, err := range file.Objects(gr).All {
			if err != nil {
				return errors.Join(append(errs, fmt.Errorf("%s: %w", name, err))...)
			}
			object := &unstructured.Unstructured{}
			if err := utiljson.Unmarshal(record.JSON, &object.Object); err != nil {
				report(fmt.Errorf("%s %s: %w", gr, record.Key, err))
				continue
			}
			if err := handle(object, report); err != nil || ctx.Err() != nil {
				return errors.Join(append(errs, err)...)
			}
		}
	}
	return errors.Join(errs...)
}

// knownType returns the type of a built-in kind in one version.
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

func inferType(gvk schema.GroupVersionKind, namespaced bool) readapi.Type {
	return readapi.Type{
		Group: gvk.Group, Namespaced: namespaced,
		Names:    crd.Names{Plural: naming.GuessPlural(gvk.Kind), Kind: gvk.Kind},
		Versions: []readapi.Version{{Name: gvk.Version}},
	}
}
