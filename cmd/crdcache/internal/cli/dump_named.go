package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
)

// get gets objects by their names and prints them, as kubectl get does: one alone as it is, several as a list.
func (o *dumpOptions) get(ctx context.Context, named []session.Named) error {
	types, all, err := o.Get(ctx, named)
	if o.ignoreNotFound {
		err = errors.Join(slices.DeleteFunc(exit.Split(err), apierrors.IsNotFound)...)
	}
	asked, found := 0, 0
	for _, got := range all {
		asked, found = asked+len(got.Names), found+len(got.Objects)
	}
	if found == 0 {
		return err
	}
	options, failed := types.Show(o.style)
	if failed != nil {
		return errors.Join(err, failed)
	}
	options.One, options.Silent = asked == 1 && found == 1, true
	sections := make([]print.Section, len(all))
	for i, got := range all {
		options.Loader.Only(got.Resource.GVR, got.Names)
		if sections[i], failed = o.section(got); failed != nil {
			return errors.Join(err, failed)
		}
	}
	return errors.Join(err, print.Sections(ctx, sections, options))
}

// section is the named objects, in the order of their names unless another is requested.
func (o *dumpOptions) section(got session.Got) (print.Section, error) {
	objects, err := got.Objects, error(nil)
	if o.order != nil {
		decoded := func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) { return object, nil }
		objects, err = print.Sorted(o.order, objects, decoded)
	}
	return print.Section{Resource: got.Resource, Empty: len(objects) == 0, Each: func(w *print.Writer) error {
		for _, object := range objects {
			if err := w.Print(print.Decoded(object)); err != nil {
				return err
			}
		}
		return nil
	}}, err
}

// meant gets what arguments name that looked like types, when behind one type none of them is one: TYPE NAME, as
// kubectl takes it.
func (o *dumpOptions) meant(ctx context.Context, types *session.Types, unresolved error) (done bool, err error) {
	names := o.TypeNames()
	errs := exit.Split(unresolved)
	if len(types.Resources) != 1 || len(names) < 2 || len(errs) != len(names)-1 || o.lists {
		return false, nil
	}
	absent := map[string]*discovery.NoMatchError{}
	for _, err := range errs {
		var none *discovery.NoMatchError
		if !errors.As(err, &none) || none.RefreshErr != nil || none.Name == names[0] || strings.Contains(none.Name, "*") {
			return false, nil
		}
		absent[none.Name] = none
	}
	err = o.get(ctx, []session.Named{{Type: names[0], Names: names[1:]}})
	return true, withTypes(err, absent)
}

// withTypes says of objects that are not there what types may have been meant.
func withTypes(err error, absent map[string]*discovery.NoMatchError) error {
	errs := exit.Split(err)
	for i, one := range errs {
		var status apierrors.APIStatus
		if !errors.As(one, &status) || !apierrors.IsNotFound(one) || status.Status().Details == nil {
			continue
		}
		if none := absent[status.Status().Details.Name]; none != nil && len(none.Suggestions) > 0 {
			errs[i] = fmt.Errorf("%w; if a type was meant: %w", one, none)
		}
	}
	return errors.Join(errs...)
}
