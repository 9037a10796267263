package testcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/manifest"
)

// Load stores objects unchanged, including their status and finalizers, as the initial state of a test. It
// replaces existing objects. It sets missing fields like a server: uid, creationTimestamp, generation, and
// defaults of custom resources. The cluster sets the resource version.
//
// Objects are *unstructured.Unstructured, typed objects, or lists of them, in any order. Definitions are
// stored first, then namespaces. An object of an unknown type or of a missing namespace causes an error,
// and all other objects are loaded.
func (c *Cluster) Load(ctx context.Context, objects ...runtime.Object) error {
	var loaded []loadedObject
	var problems []error
	for i, object := range objects {
		locate := func(err error) error { return fmt.Errorf("object %d: %w", i+1, err) }
		list, err := c.flatten(object)
		if err != nil {
			problems = append(problems, locate(err))
		}
		for _, u := range list {
			loaded = append(loaded, loadedObject{u, locate})
		}
	}
	return errors.Join(append(problems, c.storeAll(ctx, loaded))...)
}

// LoadFiles is Load for the objects of files and directories: YAML or JSON, with several objects in a file,
// lists, and compressed files. In directories and their subdirectories it reads .yaml, .yml, .json and .jsonl
// files. Errors contain the file and the position. An empty path and "-" are errors: a test has no standard
// input.
func (c *Cluster) LoadFiles(ctx context.Context, paths ...string) error {
	found, err := manifest.List(ctx, paths, manifest.ListOptions{})
	return c.loadFiles(ctx, found, err)
}

// LoadFS is LoadFiles for another file system, such as an embed.FS. Without paths it loads all of it, as with
// the path ".". "-" is a file of that name.
func (c *Cluster) LoadFS(ctx context.Context, files fs.FS, paths ...string) error {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	found, err := manifest.List(ctx, paths, manifest.ListOptions{FS: files})
	return c.loadFiles(ctx, found, err)
}

func (c *Cluster) loadFiles(ctx context.Context, listing manifest.Listing, listErr error) error {
	errs := []error{listErr}
	for _, dir := range listing.Empty {
		errs = append(errs, fmt.Errorf("%s: the directory has no YAML or JSON files", dir))
	}
	reader := manifest.NewReader(func(p *manifest.Problem) {
		if !p.Warning {
			errs = append(errs, p)
		}
	})
	var objects []loadedObject
	for _, f := range listing.Files {
		errs = append(errs, reader.Read(ctx, f, nil, func(e manifest.Entry) {
			switch u, err := e.Decode(); {
			case e.Deleted:
			case err != nil:
				reader.Problem(f, e.Position, !f.NamedAsArgument, err)
			default:
				position := e.Position
				objects = append(objects, loadedObject{u, func(err error) error {
					return &manifest.Problem{File: f.Name(), Position: position, Err: err}
				}})
			}
		}))
	}
	reader.Summarize()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(append(errs, c.storeAll(ctx, objects))...)
}

// loadedObject is an object to store. addPosition adds its location to an error.
type loadedObject struct {
	object      *unstructured.Unstructured
	addPosition func(error) error
}

// kindRank returns the position of the object's kind in the order of storing.
func (l loadedObject) kindRank() int {
	switch l.object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return 0
	case namespaceKind:
		return 1
	}
	return 2
}

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

func (c *Cluster) storeAll(ctx context.Context, objects []loadedObject) error {
	slices.SortStableFunc(objects, func(a, b loadedObject) int { return a.kindRank() - b.kindRank() })
	var problems []error
	for _, l := range objects {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.storeObject(l.object); err != nil {
			problems = append(problems, l.addPosition(err))
		}
	}
	return errors.Join(problems...)
}

func (c *Cluster) storeObject(u *unstructured.Unstructured) error {
	objectName := strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
	if u.GroupVersionKind().Group == admissionGroup && !c.options.WithoutBuiltIns {
		return fmt.Errorf("%s %s: %s", u.GetKind(), objectName, admissionRejected)
	}
	if namespace := u.GetNamespace(); namespace != "" && !c.options.WithoutBuiltIns &&
		!c.hasNamespace(namespace) {
		return fmt.Errorf("%s %s: the namespace %q does not exist: load it as well", u.GetKind(),
			objectName, namespace)
	}
	_, err := c.storage.Apply(u)
	var unknown *apiserver.UnknownTypeError
	switch {
	case errors.As(err, &unknown) && unknown.Served == nil:
		return fmt.Errorf("%s %s: %w: load its CustomResourceDefinition as well", u.GetKind(), objectName, err)
	case err != nil:
		return fmt.Errorf("%s %s: %w", u.GetKind(), objectName, err)
	}
	return nil
}

func (c *Cluster) hasNamespace(namespace string) bool {
	return c.storage.Has(schema.GroupResource{Resource: "namespaces"}, "", namespace)
}

// flatten returns an object, or the objects of a list, as unstructured objects.
func (c *Cluster) flatten(object runtime.Object) (objects []*unstructured.Unstructured, err error) {
	add := func(o runtime.Object) error {
		u, err := c.toUnstructured(o)
		objects = append(objects, u)
		return err
	}
	switch {
	case object == nil:
		err = errors.New("the object is nil")
	case meta.IsListType(object):
		err = meta.EachListItem(object, add)
	default:
		err = add(object)
	}
	if err != nil {
		return nil, err
	}
	return objects, nil
}

func (c *Cluster) toUnstructured(object runtime.Object) (*unstructured.Unstructured, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		return u, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	if u.GetAPIVersion() != "" && u.GetKind() != "" {
		return u, nil
	}
	if c.options.Scheme == nil {
		return nil, fmt.Errorf("a %T without apiVersion and kind: set its TypeMeta, or Options.Scheme", object)
	}
	kinds, _, err := c.options.Scheme.ObjectKinds(object)
	if err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(kinds[0])
	return u, nil
}
