package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
)

// ObjectArg is a type and names of its objects on the command line.
type ObjectArg struct {
	Type  string
	Names []string
	// AllNamespaces searches all namespaces if no namespace is selected. Several objects can have the name.
	AllNamespaces bool
}

// ParseObjectArgs parses TYPE/NAME... or TYPE NAME... arguments. It returns nil if the arguments are types,
// or if only a server can decide. After the CustomResourceDefinition type, arguments that could be CRD names
// are names.
func ParseObjectArgs(args []string) ([]ObjectArg, error) {
	if !slices.ContainsFunc(args, isObjectArg) {
		if len(args) > 1 && isCRDType(args[0]) && !slices.ContainsFunc(args[1:], notCRDName) {
			return []ObjectArg{{Type: args[0], Names: args[1:]}}, nil
		}
		for i, arg := range args {
			if _, err := discovery.ParseName(arg); i == 0 || err == nil || strings.Contains(arg, ",") {
				continue
			}
			if len(path.IsValidPathSegmentName(arg)) == 0 { // such as system:node
				return []ObjectArg{{Type: args[0], Names: args[1:]}}, nil
			}
		}
		return nil, nil
	}
	var parsed []ObjectArg
	for _, arg := range args {
		typeName, name, _ := strings.Cut(arg, "/")
		if !isObjectArg(arg) || strings.Contains(typeName, ",") {
			return nil, Usagef("%q is not TYPE/NAME like another argument: use TYPE/NAME for all objects, or one type and names, as in 'gizmos a b'", arg)
		}
		if problems := path.IsValidPathSegmentName(name); len(problems) > 0 || name == "" || typeName == "" {
			return nil, Usagef("%q is not a valid TYPE/NAME", arg)
		}
		i := slices.IndexFunc(parsed, func(n ObjectArg) bool { return n.Type == typeName })
		if i < 0 {
			parsed, i = append(parsed, ObjectArg{Type: typeName}), len(parsed)
		}
		if !slices.Contains(parsed[i].Names, name) {
			parsed[i].Names = append(parsed[i].Names, name)
		}
	}
	return parsed, nil
}

func isObjectArg(arg string) bool { return strings.Count(arg, "/") == 1 && !strings.Contains(arg, ",") }

// isCRDType reports whether an argument names the type CustomResourceDefinition. The names of CRDs look like
// types.
func isCRDType(arg string) bool {
	resource, group, _ := strings.Cut(strings.ToLower(arg), ".")
	return slices.Contains([]string{"crd", "crds", "customresourcedefinition", "customresourcedefinitions"},
		resource) &&
		(group == "" || strings.TrimPrefix(group, crd.GVR.Version+".") == crd.GVR.Group)
}

// notCRDName reports whether an argument does not have the form PLURAL.GROUP.
func notCRDName(arg string) bool {
	return !strings.Contains(arg, ".") || len(validation.IsDNS1123Subdomain(arg)) > 0
}

// GetResult is the result of getting the objects of one ObjectArg.
type GetResult struct {
	Resource discovery.Resource
	Names    []string
	Objects  []*unstructured.Unstructured
}

// Get reads objects by name. It returns the found objects together with the joined errors for the others.
func (r *Reader) Get(ctx context.Context, named []ObjectArg) (*Types, []GetResult, error) {
	types := make([]discovery.Resource, len(named))
	for i, n := range named {
		found, err := r.Resolve(ctx, []string{n.Type})
		if err != nil {
			return nil, nil, err
		}
		if len(found) != 1 {
			return nil, nil, Usagef("%q matches %d types: name one type", n.Type, len(found))
		}
		types[i] = found[0]
	}
	on, err := r.typesOf(types)
	if err != nil {
		return nil, nil, err
	}
	if r.PrintsTables {
		if err := on.LoadRows(ctx); err != nil {
			return nil, nil, err
		}
	}
	var results []GetResult
	var errs []error
	for i, n := range named {
		result := GetResult{Resource: types[i], Names: n.Names}
		read, err := r.byName(on.clientOf(types[i].GVR), types[i], n.AllNamespaces || r.ReadsFiles())
		for _, name := range n.Names {
			if err != nil {
				break
			}
			objects, failed := read(ctx, name)
			for _, object := range objects {
				failed = errors.Join(failed, r.transform(object))
			}
			if failed != nil {
				errs = append(errs, r.explainGet(ctx, failed, types[i], name))
				continue
			}
			result.Objects = append(result.Objects, objects...)
		}
		results, errs = append(results, result), append(errs, err)
	}
	return on, results, errors.Join(errs...)
}

// byName returns a function that reads the objects with a name: in the namespace, or in all of them.
func (r *Reader) byName(client dynamic.Interface, resource discovery.Resource,
	allNamespaces bool) (func(context.Context, string) ([]*unstructured.Unstructured, error), error) {
	switch {
	case r.cached.LabelSelector != nil || r.cached.FieldSelector != nil:
		return nil, Usagef("names and selectors cannot be used together: use one of them")
	case resource.Scope != discovery.Namespaced || r.Namespace != "":
		return func(ctx context.Context, name string) ([]*unstructured.Unstructured, error) {
			object, err := r.inNamespace(client, resource).Get(ctx, name, metav1.GetOptions{})
			return []*unstructured.Unstructured{object}, err
		}, nil
	case !allNamespaces:
		return nil, Usagef("objects in all namespaces cannot be named: use --namespace without --all-namespaces")
	}
	return func(ctx context.Context, name string) (objects []*unstructured.Unstructured, err error) {
		selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		list, err := client.Resource(resource.GVR).List(ctx, metav1.ListOptions{FieldSelector: selector})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
		if len(objects) == 0 {
			err = apierrors.NewNotFound(resource.GVR.GroupResource(), name)
		}
		return objects, err
	}, nil
}

// transform removes the fields that are not printed.
func (r *Reader) transform(object *unstructured.Unstructured) error {
	if r.cached.Transform == nil || object == nil {
		return nil
	}
	_, err := r.cached.Transform(object)
	return err
}

// explainGet adds the cause to an error, unless the error is an answer of the server.
func (r *Reader) explainGet(ctx context.Context, err error, resource discovery.Resource, name string) error {
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status) && !apierrors.IsUnauthorized(err):
		return err
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w: the API server at %s did not send %s/%s within %v", ErrNotSynced,
			r.Rest.Host, resource.GVR.GroupResource(), name, r.Timeout)
	}
	return r.Explain(ctx, err)
}
