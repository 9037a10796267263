package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/follow"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/manifest"
	"github.com/crdcache/crdcache/internal/naming"
)

type dumpVerb struct {
	streams        genericiooptions.IOStreams
	flags          session.ReadFlags
	styleFlags     session.StyleFlags
	watch          bool
	sortBy         string
	ignoreNotFound bool

	readers         []*session.Reader
	output          *print.Output
	*session.Reader // of the current cluster
	style           print.Style
	objectArgs      []session.ObjectArg
	order           *print.Order // nil for the API server's order
}

func newDump(streams genericiooptions.IOStreams) *cobra.Command {
	o := &dumpVerb{streams: streams}
	cmd := &cobra.Command{
		Use:        "dump TYPE... | TYPE NAME... | TYPE/NAME... [flags]",
		Aliases:    []string{"get"},
		SuggestFor: []string{"list", "ls", "show", "describe"},
		Short:      "Print the objects of one or more types",
		Args:       session.AtLeastOne("type", "certificates.cert-manager.io"),
		RunE:       session.RunE(o.complete, o.run),
	}
	o.flags.Add(cmd, true)
	o.flags.AddContexts(cmd)
	o.flags.AddSelectors(cmd.Flags())
	o.flags.AddCache(cmd)
	o.flags.CompleteNames(cmd, true)
	o.styleFlags.Add(cmd)
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "Print changes after the objects.")
	cmd.Flags().StringVar(&o.sortBy, "sort-by", "",
		"Sort by a JSONPath such as '.metadata.creationTimestamp', as kubectl does. Objects of each type are sorted separately.")
	cmd.Flags().BoolVar(&o.ignoreNotFound, "ignore-not-found", false, "")
	return cmd
}

func (o *dumpVerb) complete(cmd *cobra.Command, args []string) (err error) {
	if o.style, err = o.styleFlags.Style(); err != nil {
		return err
	}
	if o.sortBy != "" {
		if o.order, err = print.ParseOrder(o.sortBy); err != nil {
			return session.Usagef("--sort-by: %v", err)
		}
	}
	if o.objectArgs, err = session.ParseObjectArgs(args); err != nil {
		return err
	}
	if len(o.objectArgs) > 0 {
		args = naming.Texts(o.objectArgs, func(n session.ObjectArg) string { return n.Type })
	}
	if o.watch {
		if err := o.checkWatch(); err != nil {
			return err
		}
	}
	o.flags.OnlyNamed, o.flags.PrintsTables = !o.watch, o.style.Format.IsTable()
	o.flags.OnlyIdentities = !o.watch && o.style.Format.Name == print.Name && o.order == nil
	o.readers, err = o.flags.Readers(cmd.Context(), args, o.styleFlags.InformerOptions(), o.streams)
	if err != nil {
		return err
	}
	for i := range o.objectArgs {
		o.objectArgs[i].Type = o.readers[0].TypeNames()[i] // config names are translated
	}
	o.output = print.NewOutput(o.flags.Streams(o.streams), o.style)
	return nil
}

// checkWatch rejects flags that are incompatible with --watch.
func (o *dumpVerb) checkWatch() error {
	switch {
	case o.ignoreNotFound:
		return session.Usagef("--ignore-not-found and --watch cannot be used together: a watch never fails for missing objects; omit --ignore-not-found")
	case o.order != nil:
		return session.Usagef("--sort-by and --watch cannot be used together: changes are printed as they happen")
	case len(o.objectArgs) > 0:
		return session.Usagef("--watch takes types, not names: select one object with --field-selector metadata.name=%s",
			o.objectArgs[0].Names[0])
	}
	return (follow.Options{Style: o.style}).Validate()
}

// run prints the objects of each cluster, and with --watch their changes.
func (o *dumpVerb) run(ctx context.Context) error {
	if o.watch {
		return follow.Run(ctx, o.readers, follow.Options{Style: o.style, Query: query.All()})
	}
	err := session.EachCluster(ctx, o.readers, func(ctx context.Context, r *session.Reader) error {
		cluster := *o
		cluster.Reader = r
		return cluster.runCluster(ctx)
	})
	return errors.Join(err, o.output.Close())
}

func (o *dumpVerb) runCluster(ctx context.Context) error {
	if len(o.objectArgs) > 0 {
		return o.printNamed(ctx, o.objectArgs)
	}
	limitedCtx, cancel := o.WithTimeout(ctx)
	defer cancel()
	types, unresolved := o.ResolveTypes(limitedCtx)
	if types == nil {
		return unresolved
	}
	if unresolved != nil {
		if done, err := o.getByNames(ctx, types, unresolved); done {
			return err
		}
	}
	if err := types.LoadRows(limitedCtx); err != nil {
		return err
	}
	lists, err := types.ListAll(ctx, limitedCtx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	sections := naming.Map(lists, func(list session.ObjectList) print.Section {
		return list.Section(types.Rows(list.Resource.GVR), o.order)
	})
	options := types.SectionOptions()
	options.OmitEmptyMessage = o.ignoreNotFound
	waitErr := o.AwaitTurn(ctx)
	if waitErr == nil {
		waitErr = o.output.Print(ctx, sections, options)
	}
	return errors.Join(unresolved, err, waitErr)
}

// printNamed prints objects by name as kubectl get does: a single object alone, several as a list.
func (o *dumpVerb) printNamed(ctx context.Context, objectArgs []session.ObjectArg) error {
	limitedCtx, cancel := o.WithTimeout(ctx)
	defer cancel()
	types, results, err := o.Get(limitedCtx, objectArgs)
	if o.ignoreNotFound {
		err = errors.Join(slices.DeleteFunc(session.SplitJoined(err), apierrors.IsNotFound)...)
	}
	requestedCount, foundCount := 0, 0
	for _, result := range results {
		requestedCount, foundCount = requestedCount+len(result.Names), foundCount+len(result.Objects)
	}
	if foundCount == 0 {
		return err
	}
	if nextErr := o.AwaitTurn(ctx); nextErr != nil {
		return errors.Join(err, nextErr)
	}
	options := types.SectionOptions()
	options.SingleObject = requestedCount == 1 && foundCount == 1 && o.Cluster == ""
	options.OmitEmptyMessage = true
	sections := naming.Map(results, func(result session.GetResult) print.Section {
		return result.Section(types.Rows(result.Resource.GVR), o.order)
	})
	return errors.Join(err, o.output.Print(ctx, sections, options))
}

// getByNames treats unknown types after a single type as object names, as kubectl does.
func (o *dumpVerb) getByNames(ctx context.Context, types *session.Types,
	unresolved error) (done bool, err error) {
	names := o.TypeNames()
	// printNamed returns the problems of files, too.
	errs := slices.DeleteFunc(session.SplitJoined(unresolved), func(err error) bool {
		return errors.As(err, new(*session.UncollectedError)) || errors.As(err, new(*manifest.Problem))
	})
	if len(types.Resources) != 1 || len(names) < 2 || len(errs) != len(names)-1 || o.CommaList {
		return false, nil
	}
	noMatches := map[string]*discovery.NoMatchError{}
	for _, err := range errs {
		noMatch, ok := errors.AsType[*discovery.NoMatchError](err)
		if !ok || noMatch.RefreshErr != nil || noMatch.Name == names[0] ||
			strings.Contains(noMatch.Name, "*") {
			return false, nil
		}
		noMatches[noMatch.Name] = noMatch
	}
	err = o.printNamed(ctx, []session.ObjectArg{{Type: names[0], Names: names[1:]}})
	return true, suggestTypes(err, noMatches)
}

// suggestTypes adds the suggested types to NotFound errors of objects.
func suggestTypes(err error, noMatches map[string]*discovery.NoMatchError) error {
	errs := session.SplitJoined(err)
	for i, typeErr := range errs {
		var status apierrors.APIStatus
		if !errors.As(typeErr, &status) || !apierrors.IsNotFound(typeErr) || status.Status().Details == nil {
			continue
		}
		if noMatch := noMatches[status.Status().Details.Name]; noMatch != nil &&
			len(noMatch.Suggestions) > 0 {
			errs[i] = fmt.Errorf("%w; if a type was meant: %w", typeErr, noMatch)
		}
	}
	return errors.Join(errs...)
}
