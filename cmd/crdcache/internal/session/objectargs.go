package session

import (
	"cmp"
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

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/requests"
)

// ObjectArg is a type and names of its objects on the command line.
type ObjectArg struct {
	Type  string
	Names []string
	// AllNamespaces searches all namespaces if no namespace is selected. It can find several objects.
	AllNamespaces bool
}

// ParseObjectArgs parses TYPE/NAME... or TYPE NAME... arguments. It returns nil if all arguments can be
// types. After the type CustomResourceDefinition, arguments in the form of CRD names are names.
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
		i := slices.IndexFunc(parsed, func(parsedArg ObjectArg) bool { return parsedArg.Type == typeName })
		if i < 0 {
			parsed, i = append(parsed, ObjectArg{Type: typeName}), len(parsed)
		}
		parsed[i].Names = naming.AppendMissing(parsed[i].Names, name)
	}
	return parsed, nil
}

func isObjectArg(arg string) bool { return strings.Count(arg, "/") == 1 && !strings.Contains(arg, ",") }

// isCRDType reports whether an argument names the type CustomResourceDefinition. The names of CRDs look like
// types.
func isCRDType(arg string) bool {
	resource, group, _ := strings.Cut(strings.ToLower(arg), ".")
	return slices.Contains([]string{"crd", "crds", "customresourcedefinition", "customresourcedefinitions"},
		resource) && (group == "" || strings.TrimPrefix(group, crd.GVR.Version+".") == crd.GVR.Group)
}

// notCRDName reports whether an argument cannot be PLURAL.GROUP.
func notCRDName(arg string) bool {
	return !strings.Contains(arg, ".") || len(validation.IsDNS1123Subdomain(arg)) > 0
}

// GetResult has the objects of one ObjectArg.
type GetResult struct {
	Resource discovery.Resource
	Names    []string
	Objects  []*unstructured.Unstructured
}

// Section returns the objects in the given order. A nil order means the order of the names.
func (g GetResult) Section(rows *print.Rows, order *print.Order) print.Section {
	items := naming.Map(g.Objects, func(object *unstructured.Unstructured) any { return object })
	return ObjectList{g.Resource, items}.Section(rows, order)
}

// Get reads objects by name. It returns all objects that it could read, together with the joined errors. They
// include the problems of files, which can lack an object.
func (r *Reader) Get(ctx context.Context, objectArgs []ObjectArg) (*Types, []GetResult, error) {
	resources := make([]discovery.Resource, len(objectArgs))
	var problems error
	for i, arg := range objectArgs {
		matches, err := r.Resolve(ctx, []string{arg.Type}, "get")
		if len(matches) != 1 {
			return nil, nil, cmp.Or(err, Usagef("%q matches %d types: name one type", arg.Type, len(matches)))
		}
		resources[i] = matches[0]
		problems = JoinDistinct(problems, err)
	}
	on, err := r.newTypes(resources)
	if err != nil {
		return nil, nil, err
	}
	if err := on.LoadRows(ctx); err != nil {
		return nil, nil, err
	}
	var results []GetResult
	errs := []error{problems}
	for i, arg := range objectArgs {
		result := GetResult{Resource: resources[i], Names: arg.Names}
		getByName, err := r.nameGetter(on.clientFor(resources[i].GVR), resources[i], arg.AllNamespaces ||
			r.ReadsFiles())
		for _, name := range arg.Names {
			if err != nil {
				break
			}
			var objects []*unstructured.Unstructured
			getErr := r.Retry(ctx, resources[i].GVR.GroupResource().String(), func() (err error) {
				objects, err = getByName(ctx, name)
				return err
			})
			for _, object := range objects {
				r.removeOmitted(object)
			}
			if getErr != nil {
				errs = append(errs, r.explainGet(ctx, getErr, resources[i], name))
				continue
			}
			result.Objects = append(result.Objects, objects...)
		}
		results, errs = append(results, result), append(errs, err)
	}
	return on, results, errors.Join(errs...)
}

// nameGetter returns a function that reads the objects with a name in the requested namespaces, as far as the
// config selects them.
func (r *Reader) nameGetter(client dynamic.Interface, resource discovery.Resource,
	allNamespaces bool) (func(context.Context, string) ([]*unstructured.Unstructured, error), error) {
	if r.informerOptions.LabelSelector != nil || r.informerOptions.FieldSelector != nil {
		return nil, Usagef("names and selectors cannot be used together: use one of them")
	}
	selected, selects, err := r.listOptions(resource)
	isOneNamespace := resource.Scope != discovery.Namespaced || r.Namespace != ""
	switch {
	case err != nil:
		return nil, err
	case isOneNamespace && selected.LabelSelector+selected.FieldSelector == "":
		return func(ctx context.Context, name string) ([]*unstructured.Unstructured, error) {
			namespaced := client.Resource(resource.GVR).Namespace(r.NamespaceFor(resource))
			object, err := namespaced.Get(ctx, name, metav1.GetOptions{})
			if err == nil && object.GetName() != name {
				err = fmt.Errorf("get %s/%s: the server answered with another object, %s %q", resource.GVR.Resource,
					name, object.GetKind(), object.GetName())
			}
			return []*unstructured.Unstructured{object}, err
		}, nil
	case !isOneNamespace && !allNamespaces:
		return nil, Usagef("objects in all namespaces cannot be named: use --namespace without --all-namespaces")
	}
	return func(ctx context.Context, name string) (objects []*unstructured.Unstructured, err error) {
		options := selected
		options.FieldSelector = strings.TrimSuffix(fields.OneTermEqualSelector(metav1.ObjectNameField,
			name).String()+","+selected.FieldSelector, ",")
		items, _, err := requests.ListPage(ctx, client, resource.GVR, r.NamespaceFor(resource), options,
			false)
		for _, item := range items {
			// Some servers ignore field selectors.
			if m := item.(metav1.Object); m.GetName() != name || !selects(m.GetNamespace()) {
				continue
			}
			object, err := DecodeStored(item)
			if err != nil {
				return nil, err
			}
			objects = append(objects, object)
		}
		if err == nil && len(objects) == 0 {
			err = apierrors.NewNotFound(resource.GVR.GroupResource(), name)
			if selected != (metav1.ListOptions{}) {
				err = fmt.Errorf("%w among the objects that the config selects", err)
			}
		}
		return objects, err
	}, nil
}

// removeOmitted removes the fields that the flags omit.
func (r *Reader) removeOmitted(object *unstructured.Unstructured) {
	if r.OmitsManagedFields() && object != nil {
		object.SetManagedFields(nil)
	}
}

// explainGet adds the cause to an error, except to errors from the server that need no explanation.
func (r *Reader) explainGet(ctx context.Context, err error, resource discovery.Resource, name string) error {
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, ErrNotSynced):
		return fmt.Errorf("get %s/%s: %w", resource.GVR.GroupResource(), name, err)
	case errors.As(err, &status) && !apierrors.IsUnauthorized(err):
		return err
	}
	return r.Explain(ctx, err)
}
