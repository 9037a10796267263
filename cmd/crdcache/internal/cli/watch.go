package cli

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/follow"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

type watchFlags struct {
	reader      *session.ReadFlags
	conditions  session.QueryFlags
	style       print.StyleFlags
	color       print.ColorFlag
	changesOnly bool
	diff        bool
	wait        bool
	timestamps  bool
	managers    bool
}

func newWatch(streams genericiooptions.IOStreams) *cobra.Command {
	f := &watchFlags{reader: session.NewReadFlags()}
	cmd := &cobra.Command{
		Use:        "watch TYPE... [flags]",
		SuggestFor: []string{"follow", "tail"},
		Short:      "Print changes of objects, or of the result of a query",
		Long: "Print the objects of types, and then each change until interrupted. With\n" +
			"conditions, as in query, an object that stops matching is DELETED.\n\n" +
			"Types are followed as their CustomResourceDefinitions are installed and deleted.\n" +
			"A wildcard or category includes types that are installed later. If none of the\n" +
			"named types exists, watch fails unless --wait is set.",
		Annotations: detailsAnnotation("--diff also prints the changed fields of an object that starts or stops\n" +
			"matching. After a broken connection, objects are printed again only if they have\n" +
			"changed. Changes of types are printed on stderr. A named type that does not\n" +
			"exist is Pending.\n\n" +
			"json prints one line per event with type and object, and with \"exists\": true for\n" +
			"an object that only stopped matching. watch ends when the reader of its output\n" +
			"closes the pipe."),
		Example: "  crdcache watch certificates.cert-manager.io -A --diff\n" +
			"  crdcache watch '*.cert-manager.io' -A\n" +
			"  crdcache watch certs --config indexes.yaml --index notReady --changes-only",
		Args: session.NeedTypes,
		RunE: newRunE(streams, f.toOptions),
	}
	set := cmd.Flags()
	f.reader.Add(set)
	f.reader.AddCache(set)
	f.conditions.Add(set)
	f.style.Add(set)
	f.color.Add(set)
	set.BoolVar(&f.changesOnly, "changes-only", false, "Omit the initial objects.")
	set.BoolVar(&f.diff, "diff", false, "Print the changed fields below each object.")
	set.BoolVar(&f.wait, "wait", false,
		"Wait for types even if none exists. The limit is --timeout.")
	set.BoolVar(&f.timestamps, "timestamps", false,
		"Print the time of each event.")
	set.BoolVar(&f.managers, "managers", false,
		"Print the field managers of each change. Needs more memory, because managed fields are cached.")
	f.reader.Complete(cmd, true)
	f.style.Complete(cmd)
	print.CompleteWords(cmd, "color", []string{"auto", "always", "never"})
	f.reader.CompleteIndexes(cmd, "=", "index", "not")
	f.reader.CompleteIndexes(cmd, "", "missing")
	return cmd
}

// watchOptions are the validated flags and arguments of watch.
type watchOptions struct{ follow.Options }

func (o watchOptions) run(ctx context.Context) error { return follow.Run(ctx, o.Options) }

func (f *watchFlags) toOptions(cmd *cobra.Command, args []string,
	streams genericiooptions.IOStreams) (o watchOptions, err error) {
	o.Options = follow.Options{Events: true, ChangesOnly: f.changesOnly, Diff: f.diff, Wait: f.wait,
		Timestamps: f.timestamps, Managers: f.managers}
	if o.Style, err = f.style.Style(); err != nil {
		return o, err
	}
	if err = o.Check(); err != nil {
		return o, err
	}
	if o.Color, err = f.color.Enabled(streams.Out); err != nil {
		return o, err
	}
	if f.color.Always() && !o.Style.Format.IsTable() {
		return o, exit.Usagef("--color always needs a table: omit --output, or use wide")
	}
	if o.Query, err = f.conditions.Query(); err != nil {
		return o, err
	}
	cached := f.style.Cached()
	o.KeepManagedFields = cached.Transform == nil
	if f.managers {
		cached.Transform = nil
	}
	o.Reader, err = f.reader.Reader(cmd.Context(), args, cached, streams)
	return o, err
}
