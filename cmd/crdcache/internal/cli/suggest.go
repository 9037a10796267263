package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/naming"
)

type suggestVerb struct {
	streams genericiooptions.IOStreams
	flags   session.ServerFlags
	crds    []string
	keep    bool

	types  []string
	target *session.Target
}

func newSuggest(streams genericiooptions.IOStreams) *cobra.Command {
	o := &suggestVerb{streams: streams}
	cmd := &cobra.Command{
		Use:               "suggest TYPE... [flags]",
		Short:             "Suggest an index config for types with a CRD",
		Args:              session.AtLeastOne("type", "certificates.cert-manager.io"),
		ValidArgsFunction: o.flags.CompleteTypes(true, nil),
		RunE:              session.RunE(o.complete, o.run),
	}
	o.flags.Add(cmd)
	cmd.Flags().StringSliceVar(&o.crds, "crds", nil,
		"File or directory with CRDs, instead of the cluster's. May be repeated.")
	cmd.Flags().BoolVar(&o.keep, "keep", false, "Keep only the fields that the indexes and references read.")
	return cmd
}

func (o *suggestVerb) complete(cmd *cobra.Command, args []string) (err error) {
	if o.types, err = session.SplitTypes(args); err != nil {
		return err
	}
	if len(o.crds) == 0 {
		o.target, err = o.flags.Target(cmd.Context(), o.streams)
	} else if err = o.flags.RejectSourceFlags("with --crds: use one of them"); err == nil {
		o.target, err = o.flags.FileTarget(cmd.Context(), o.streams, o.crds...)
	}
	return err
}

func (o *suggestVerb) run(ctx context.Context) error {
	types, targets, err := o.find(ctx)
	if len(types) == 0 {
		return err
	}
	text, warnings, renderErr := renderConfig(types, targets, o.keep)
	for _, warning := range warnings {
		print.Warnf(o.streams.ErrOut, "%s", warning)
	}
	if renderErr == nil {
		_, renderErr = o.streams.Out.Write(text)
	}
	return errors.Join(err, renderErr)
}

type servedType struct {
	*crd.Definition
	crd.Version
}

// find reads the definitions of the types from files or the cluster. It also returns the possible targets of
// references, and the joined errors of missing names.
func (o *suggestVerb) find(ctx context.Context) (types []servedType, targets targetTypes, err error) {
	target := o.target
	ctx, cancel := target.WithTimeout(ctx)
	defer cancel()
	resources, unresolved := target.Resolve(ctx, o.types)
	if len(resources) == 0 {
		return nil, nil, unresolved
	}
	client, err := dynamicinformer.NewClient(target.Rest, nil)
	if err != nil {
		return nil, nil, err
	}
	catalog, err := target.Catalog(ctx)
	if err != nil {
		return nil, nil, err
	}
	types, errs := readDefinitions(ctx, target, client, resources)
	// wildcards and categories select only types with a CRD
	if len(resources) > len(o.types) && len(types) > 0 {
		errs = slices.DeleteFunc(errs, func(err error) bool { return apierrors.IsNotFound(err) })
	}
	return types, typesOfCatalog(catalog), errors.Join(append([]error{unresolved}, errs...)...)
}

// readDefinitions reads the definitions of types. It returns an error for each type without a definition.
func readDefinitions(ctx context.Context, target *session.Target, client dynamic.Interface,
	resources []discovery.Resource) (types []servedType, errs []error) {
	for _, r := range resources {
		definition, err := target.Definition(ctx, client, r)
		switch {
		case apierrors.IsNotFound(err):
			errs = append(errs, fmt.Errorf("%s: cannot suggest indexes: no CRD defines this type: %w", r, err))
		case err != nil:
			errs = append(errs,
				fmt.Errorf("%s: cannot suggest indexes: the CRD cannot be read, give its file with --crds: %w", r, err))
		default:
			if version, ok := definition.Version(r.GVR.Version); ok {
				types = append(types, servedType{definition, version})
			}
		}
	}
	return types, errs
}

type targetTypes []*crd.Definition

// typesOfCatalog returns the types of a server and the built-in types, without versions.
func typesOfCatalog(catalog *discovery.Catalog) (all targetTypes) {
	for _, r := range catalog.Resources() {
		if r.Preferred {
			names := crd.Names{Plural: r.GVR.Resource, Kind: r.GVK.Kind}
			all = append(all, &crd.Definition{Group: r.GVR.Group, Names: names,
				Namespaced: r.Scope == discovery.Namespaced})
		}
	}
	for _, t := range naming.BuiltinTypes {
		all = append(all, &crd.Definition{Group: t.Group,
			Names: crd.Names{Plural: t.Plural, Kind: t.Kind}, Namespaced: t.Has(naming.Namespaced)})
	}
	return all
}

// defaultValueOf returns the value for a missing field: the schema's default, or fallback unless it is empty.
func defaultValueOf(s *crd.Schema, fallback string) *string {
	if text, ok := s.Default.(string); ok {
		return &text
	}
	if kinds := kindsOf(s); len(kinds) == 1 {
		return &kinds[0]
	}
	if fallback == "" {
		return nil
	}
	return &fallback
}
