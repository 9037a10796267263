package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/follow"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

type watchVerb struct {
	streams    genericiooptions.IOStreams
	flags      session.ReadFlags
	queryFlags session.QueryFlags
	styleFlags session.StyleFlags
	colorFlag  session.ColorFlag
	options    follow.Options
	readers    []*session.Reader
}

func newWatch(streams genericiooptions.IOStreams) *cobra.Command {
	o := &watchVerb{streams: streams, options: follow.Options{Events: true}}
	cmd := &cobra.Command{
		Use:        "watch TYPE... [flags]",
		SuggestFor: []string{"follow", "tail"},
		Short:      "Print changes of objects, or of the result of a query",
		Long: "Print the objects of types, and then each change until interrupted. With\n" +
			"conditions, as in query, an object that stops matching is DELETED.\n\n" +
			"Types are followed as their CustomResourceDefinitions are installed and deleted.\n" +
			"A wildcard or category includes types that are installed later. If none of the\n" +
			"named types exists, watch fails unless --wait is set.",
		Annotations: session.Details("--diff also prints the changed fields of an object that starts or stops\n" +
			"matching. After a broken connection, objects are printed again only if they have\n" +
			"changed. Changes of types are printed on stderr. A named type that does not\n" +
			"exist is Pending.\n\n" +
			"json prints one line per event with type and object, and with \"exists\": true for\n" +
			"an object that only stopped matching. watch ends when the reader of its output\n" +
			"closes the pipe."),
		Example: "  crdcache watch certificates.cert-manager.io -A --diff\n" +
			"  crdcache watch '*.cert-manager.io' -A\n" +
			"  crdcache watch certs --config indexes.yaml --index notReady --changes-only",
		Args: session.AtLeastOne("type", "certificates.cert-manager.io"),
		RunE: session.RunE(o.complete, o.run),
	}
	o.flags.Add(cmd, true)
	o.flags.AddContexts(cmd)
	o.flags.AddSelectors(cmd.Flags())
	o.flags.AddCache(cmd)
	o.queryFlags.Add(cmd, &o.flags.ConfigFlags)
	o.styleFlags.Add(cmd)
	o.colorFlag.Add(cmd)
	set := cmd.Flags()
	set.BoolVar(&o.options.ChangesOnly, "changes-only", false, "Omit the initial objects.")
	set.BoolVar(&o.options.Diff, "diff", false, "Print the changed fields below each object.")
	set.BoolVar(&o.options.WaitForTypes, "wait", false,
		"Wait for types even if none exists. The limit is --timeout.")
	set.BoolVar(&o.options.Timestamps, "timestamps", false, "Print the time of each event.")
	set.BoolVar(&o.options.Managers, "managers", false,
		"Print the field managers of each change. Needs more memory, because managed fields are cached.")
	return cmd
}

func (o *watchVerb) complete(cmd *cobra.Command, args []string) (err error) {
	if o.options.Style, err = o.styleFlags.Style(); err != nil {
		return err
	}
	if err = o.options.Validate(); err != nil {
		return err
	}
	if o.colorFlag.Always() && !o.options.Style.Format.IsTable() {
		return session.Usagef("--color always needs a table: omit --output, or use wide")
	}
	o.options.Color = o.colorFlag.Enabled(o.streams.Out)
	if o.options.Query, err = o.queryFlags.Query(); err != nil {
		return err
	}
	options := o.styleFlags.InformerOptions()
	o.options.KeepManagedFields = options.Transform == nil
	if o.options.Managers {
		options.Transform = nil
	}
	o.readers, err = o.flags.Readers(cmd.Context(), args, options, o.streams)
	return err
}

func (o *watchVerb) run(ctx context.Context) error { return follow.Run(ctx, o.readers, o.options) }
