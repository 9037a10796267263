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

	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/readapi"
)

// Load puts objects into the cluster as they are, with their status, finalizers and whatever else they say:
// the state that a test begins with. An object that is there already is replaced. What a cluster gives every
// object is added where it is missing: uid, creation time, generation, defaults of custom resources. The
// resource version is always the cluster's.
//
// Objects are *unstructured.Unstructured, typed ones, or lists of them. Definitions come first, then
// namespaces, in whatever order they are given; an object of a namespace that the cluster does not have is an
// error, as is one of an unknown type. What is wrong with one keeps none of the others from being loaded.
func (c *Cluster) Load(ctx context.Context, objects ...runtime.Object) error {
	var all []loaded
	var problems []error
	for i, object := range objects {
		where := func(err error) error { return fmt.Errorf("object %d: %w", i+1, err) }
		list, err := c.flatten(object)
		if err != nil {
			problems = append(problems, where(err))
		}
		for _, u := range list {
			all = append(all, loaded{u, where})
		}
	}
	return errors.Join(append(problems, c.store(ctx, all))...)
}

// LoadFiles is Load of the objects of files and directories: YAML or JSON, several in a file, lists,
// compressed or not. Directories are read with those below; of their files those count that end in .yaml,
// .yml, .json or .jsonl. Errors say the file and the place in it.
func (c *Cluster) LoadFiles(ctx context.Context, paths ...string) error {
	found, err := manifest.List(ctx, paths, manifest.ListOptions{})
	return c.loadFiles(ctx, found, err)
}

// LoadFS is LoadFiles for another file system, such as an embed.FS.
func (c *Cluster) LoadFS(ctx context.Context, files fs.FS, paths ...string) error {
	found, err := manifest.ListFS(ctx, files, paths)
	return c.loadFiles(ctx, found, err)
}

func (c *Cluster) loadFiles(ctx context.Context, found manifest.Listing, listed error) error {
	failed := []error{listed}
	report := func(p *manifest.Problem) {
		if !p.Warning {
			failed = append(failed, p)
		}
	}
	for _, dir := range found.Empty {
		failed = append(failed, fmt.Errorf("%s: no file of YAML or JSON is in it", dir))
	}
	reader := manifest.NewReader(report)
	var all []loaded
	for _, f := range found.Files {
		failed = append(failed, reader.Read(ctx, f, nil, func(e manifest.Entry) {
			u, err := e.Decode()
			if err != nil {
				reader.Problem(f, e.Place, !f.Named, err)
				return
			}
			place := e.Place
			all = append(all, loaded{u,
				func(err error) error { return &manifest.Problem{File: f.Name(), Place: place, Err: err} }})
		}))
	}
	reader.Summarize()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return errors.Join(append(failed, c.store(ctx, all))...)
}

// loaded is an object to be stored, and what says where it comes from.
type loaded struct {
	object *unstructured.Unstructured
	where  func(error) error
}

// rank is the order in which objects are stored.
func (l loaded) rank() int {
	switch l.object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return 0
	case namespaceKind:
		return 1
	}
	return 2
}

var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// store stores objects, and joins what is wrong with them.
func (c *Cluster) store(ctx context.Context, all []loaded) error {
	slices.SortStableFunc(all, func(a, b loaded) int { return a.rank() - b.rank() })
	var problems []error
	for _, l := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.storeOne(l.object); err != nil {
			problems = append(problems, l.where(err))
		}
	}
	return errors.Join(problems...)
}

func (c *Cluster) storeOne(u *unstructured.Unstructured) error {
	what := strings.TrimPrefix(u.GetNamespace()+"/"+u.GetName(), "/")
	if u.GroupVersionKind().Group == admission && !c.options.Bare {
		return fmt.Errorf("%s %s: %s", u.GetKind(), what, refusedAdmission)
	}
	if namespace := u.GetNamespace(); namespace != "" && !c.options.Bare && !c.has(namespace) {
		return fmt.Errorf("%s %s: the namespace %q does not exist: load it as well", u.GetKind(),
			what, namespace)
	}
	_, err := c.storage.Apply(u)
	var unknown *readapi.UnknownTypeError
	switch {
	case errors.As(err, &unknown) && unknown.Served == nil:
		return fmt.Errorf("%s %s: %w: load its CustomResourceDefinition as well", u.GetKind(), what, err)
	case err != nil:
		return fmt.Errorf("%s %s: %w", u.GetKind(), what, err)
	}
	return nil
}

// has reports whether a namespace is there.
func (c *Cluster) has(namespace string) bool {
	return c.storage.Has(schema.GroupResource{Resource: "namespaces"}, "", namespace)
}

// flatten returns the objects of an object or a list, unstructured.
func (c *Cluster) flatten(object runtime.Object) ([]*unstructured.Unstructured, error) {
	if object == nil {
		return nil, errors.New("it is nil")
	}
	if !meta.IsListType(object) {
		u, err := c.toUnstructured(object)
		if err != nil {
			return nil, err
		}
		return []*unstructured.Unstructured{u}, nil
	}
	items, err := meta.ExtractList(object)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, item := range items {
		u, err := c.toUnstructured(item)
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// toUnstructured returns an object without its Go type, but with its kind.
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
		return nil, fmt.Errorf("a %T does not say its apiVersion and kind: set its TypeMeta, or Options.Scheme", object)
	}
	kinds, _, err := c.options.Scheme.ObjectKinds(object)
	if err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(kinds[0])
	return u, nil
}
