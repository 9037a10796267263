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
	Resource      discovery.Resource
	Names         []string
	Objects       []*unstructured.Unstructured
	allNamespaces bool
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
			return nil, nil, Usagef("%q matches %d types: name one type",
				n.Type, len(found))
		}
		types[i] = found[0]
	}
	on, err := r.typesOf(types)
	if err != nil {
		return nil, nil, err
	}
	var results []GetResult
	var errs []error
	for i, n := range named {
		got, err := r.getRequested(ctx, on.Client, GetResult{Resource: types[i], Names: n.Names,
			allNamespaces: n.AllNamespaces ||
				r.ReadsFiles()})
		results, errs = append(results, got), append(errs, err)
	}
	return on, results, errors.Join(errs...)
}

func (r *Reader) getRequested(ctx context.Context, client dynamic.Interface,
	request GetResult) (GetResult, error) {
	switch {
	case r.cached.LabelSelector != nil || r.cached.FieldSelector != nil:
		return request, Usagef("names and selectors cannot be used together: use one of them")
	case request.Resource.Scope == discovery.Namespaced && r.Namespace == "" && request.allNamespaces:
		return r.findInAllNamespaces(ctx, client, request)
	case request.Resource.Scope == discovery.Namespaced && r.Namespace == "":
		return request, Usagef(
			"names need one namespace: use --namespace without --all-namespaces")
	}
	from := r.inNamespace(client, request.Resource)
	var errs []error
	for _, name := range request.Names {
		object, err := from.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			err = r.transform(object)
		}
		if err != nil {
			errs = append(errs, r.explainGet(ctx, err, request.Resource, name))
			continue
		}
		request.Objects = append(request.Objects, object)
	}
	return request, errors.Join(errs...)
}

// findInAllNamespaces looks up names in all namespaces.
func (r *Reader) findInAllNamespaces(ctx context.Context, client dynamic.Interface,
	request GetResult) (GetResult, error) {
	var errs []error
	for _, name := range request.Names {
		selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		list, err := client.Resource(request.Resource.GVR).List(ctx,
			metav1.ListOptions{FieldSelector: selector})
		if err == nil && len(list.Items) == 0 {
			err = apierrors.NewNotFound(request.Resource.GVR.GroupResource(), name)
		}
		if err != nil {
			errs = append(errs, r.explainGet(ctx, err, request.Resource, name))
			continue
		}
		for i := range list.Items {
			if err := r.transform(&list.Items[i]); err != nil {
				return request, err
			}
			request.Objects = append(request.Objects, &list.Items[i])
		}
	}
	return request, errors.Join(errs...)
}

// transform removes the fields that are not printed.
func (r *Reader) transform(object *unstructured.Unstructured) error {
	if r.cached.Transform == nil {
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
