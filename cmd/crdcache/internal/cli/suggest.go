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

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// suggestFlags are the flags of suggest.
type suggestFlags struct {
	target *session.ServerFlags
	crds   []string
}

// newSuggest returns the command.
func newSuggest(streams genericiooptions.IOStreams) *cobra.Command {
	f := &suggestFlags{target: session.NewServerFlags()}
	cmd := &cobra.Command{
		Use:   "suggest TYPE... [flags]",
		Short: "Propose an index config from what a CRD says is worth looking at",
		Long: "Print an index config for types, made from their CRDs: of selectable fields and printer columns, and of what\n" +
			"the schema says is worth looking at: words from a list, times, lists of texts, conditions, and references\n" +
			"to other objects. It is a beginning, to be edited; 'validate' has nothing to say against it.",
		Example: "  crdcache suggest certificates.cert-manager.io > indexes.yaml\n" +
			"  crdcache suggest workloads --crds config/crd/",
		Args:              session.NeedTypes,
		ValidArgsFunction: f.target.CompleteDefinedTypes(),
		RunE: func(cmd *cobra.Command, args []string) error {
			found, known, err := f.find(cmd.Context(), args, streams)
			if len(found) == 0 {
				return err
			}
			text, warnings, failed := renderConfig(found, known)
			for _, warning := range warnings {
				fmt.Fprintf(streams.ErrOut, "warning: %s\n", warning)
			}
			if failed == nil {
				_, failed = streams.Out.Write(text)
			}
			return errors.Join(err, failed)
		},
	}
	f.target.Add(cmd.Flags())
	cmd.Flags().StringSliceVar(&f.crds, "crds", nil, "File or directory with CustomResourceDefinitions to take instead of the cluster's. May be repeated.")
	f.target.Complete(cmd)
	return cmd
}

// servedType is a version of a type.
type servedType struct {
	*crd.Definition
	crd.Version
}

// find looks the types up in files or in the cluster. It returns all types of that source, too, and the joined errors of the
// names that it did not find.
func (f *suggestFlags) find(
	ctx context.Context, names []string, streams genericiooptions.IOStreams,
) (found []servedType, known knownTypes, err error) {
	if names, err = session.SplitTypes(names); err != nil {
		return nil, nil, err
	}
	if len(f.crds) > 0 {
		if err := f.target.RefuseAll("with --crds: give one of them"); err != nil {
			return nil, nil, err
		}
		definitions, err := session.DefinitionsFromFiles(ctx, f.crds, streams.In)
		found, missing := typesInFiles(names, definitions)
		return found, typesOfDefinitions(definitions), errors.Join(err, missing)
	}
	on, err := f.target.Target(ctx, streams)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := on.Limit(ctx)
	defer cancel()
	resources, missing := on.Resolve(ctx, names)
	if len(resources) == 0 {
		return nil, nil, missing
	}
	client, err := dynamicinformer.NewClient(on.Config, nil)
	if err != nil {
		return nil, nil, err
	}
	catalog, err := on.Catalog(ctx)
	if err != nil {
		return nil, nil, err
	}
	found, errs := definedTypes(ctx, on, client, resources)
	if len(resources) > len(names) && len(found) > 0 { // wildcards and categories stand for what can be done
		errs = slices.DeleteFunc(errs, func(err error) bool { return apierrors.IsNotFound(err) })
	}
	return found, typesOfCatalog(catalog), errors.Join(append([]error{missing}, errs...)...)
}

// definedTypes reads the definitions of types. What it finds comes with the errors of the others.
func definedTypes(ctx context.Context, on *session.Target, client dynamic.Interface, resources []discovery.Resource) (found []servedType, errs []error) {
	for _, r := range resources {
		definition, err := on.Definition(ctx, client, r)
		switch {
		case apierrors.IsNotFound(err):
			errs = append(errs, fmt.Errorf("%s: indexes are proposed from the CRD, and no CRD defines this type: %w", r, err))
			continue
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: indexes are proposed from the CRD, which cannot be read: %w", r, err))
			continue
		}
		if version, ok := definition.Version(r.GVR.Version); ok {
			found = append(found, servedType{definition, version})
		}
	}
	return found, errs
}

// typesInFiles finds names among definitions: plural, singular, short name, kind or pattern, with or without group and
// version.
func typesInFiles(names []string, known []*crd.Definition) ([]servedType, error) {
	var found []servedType
	var errs []error
	for _, text := range names {
		name, err := discovery.ParseName(text)
		if err != nil {
			return nil, exit.Usagef("%v", err)
		}
		matches := matchDefinitions(name, known)
		if len(matches) == 0 {
			errs = append(errs, fmt.Errorf("the files define no type %q", text))
		}
		found = append(found, matches...)
	}
	return found, errors.Join(errs...)
}

func matchDefinitions(name discovery.Name, known []*crd.Definition) []servedType {
	var found []servedType
	for _, reading := range name.Readings {
		for _, d := range known {
			versions := make([]string, len(d.Versions))
			for i, v := range d.Versions {
				versions[i] = v.Name
			}
			words := append([]string{d.Names.Plural, d.Names.Singular, d.Names.Kind}, d.Names.ShortNames...)
			if !reading.Fits(d.Group, versions, words) {
				continue
			}
			version := reading.Version
			if served := d.ServedVersions(); version == "" && len(served) > 0 {
				version = served[0]
			}
			if v, ok := d.Version(version); ok {
				found = append(found, servedType{d, v})
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}
