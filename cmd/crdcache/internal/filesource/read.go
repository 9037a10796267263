package filesource

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/snapshot"
	"github.com/crdcache/crdcache/serving/readapi"
)

// ReadFiles works like manifest.ReadFiles, and reads the objects of one type from snapshots.
func ReadFiles(ctx context.Context, options manifest.ReadOptions, gr schema.GroupResource,
	handle manifest.ObjectHandler) error {
	var errs []error
	var others []string
	for _, path := range options.Paths {
		sourceOptions := &Options{In: options.In}
		open, err := snapshotOpener(ctx, path, sourceOptions)
		if options.In = sourceOptions.In; err == nil && open != nil {
			errs = append(errs, readSnapshot((&manifest.File{Path: path}).Name(), open, gr, handle))
		} else {
			others = append(others, path) // the manifest reader reports the error
		}
	}
	options.Paths = others
	return errors.Join(append(errs, manifest.ReadFiles(ctx, options, handle))...)
}

// readSnapshot calls handle for the objects of a type in a snapshot. The error says if it could not be saved.
func readSnapshot(name string, open func() (*snapshot.File, error), gr schema.GroupResource,
	handle manifest.ObjectHandler) error {
	file, err := open()
	if err != nil {
		return err
	}
	defer file.Close()
	objects := file.Objects(gr)
	if objects == nil {
		return nil
	}
	var errs []error
	report := func(err error) { errs = append(errs, &manifest.Problem{File: name, Err: err}) }
	if saved := objects.Type(); saved.Missing != nil && !saved.NotRequested {
		report(fmt.Errorf("%s was not saved: %s", gr, saved.Missing.Message))
	}
	for record, err := range objects.All {
		object := &unstructured.Unstructured{}
		if err == nil {
			err = utiljson.Unmarshal(record.JSON, &object.Object)
		}
		if err != nil {
			report(fmt.Errorf("%s %s: %w", gr, record.Key, err))
			break
		}
		handle(object, report)
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
