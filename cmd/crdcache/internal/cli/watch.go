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
		Short:      "Stream changes of the objects of one or more types, or of a query",
		Long: "Print the objects of the types, and then each change until interrupted. With conditions, as query takes\n" +
			"them, changes are relative to the query: an object that stops fulfilling it is DELETED. With --diff, what\n" +
			"changed is shown for that too, as for an object that begins to fulfil it. Objects that are only read again,\n" +
			"after the connection broke, are not printed again.\n\n" +
			"The types are followed as their CustomResourceDefinitions come and go, which is said on stderr. A wildcard\n" +
			"or a category takes up types that are installed later. A name that stands for nothing yet is Pending, and\n" +
			"watched when its type comes; if nothing that is named exists, that is an error, unless there is a wildcard\n" +
			"or --wait is given.\n\n" +
			"In json each event is a line of its own, with type and object, and \"exists\": true for an object that is\n" +
			"DELETED only because it stopped fulfilling the query. When the reader of the output goes away, as head does,\n" +
			"watch ends.",
		Example: "  crdcache watch certificates.cert-manager.io -A --diff\n" +
			"  crdcache watch '*.cert-manager.io' -A\n" +
			"  crdcache watch certs --config indexes.yaml --index notReady --changes-only",
		Args: session.NeedTypes,
		RunE: runs(streams, f.toOptions),
	}
	set := cmd.Flags()
	f.reader.Add(set)
	f.reader.AddCache(set)
	f.conditions.Add(set)
	f.style.Add(set)
	f.color.Add(set)
	set.BoolVar(&f.changesOnly, "changes-only", false, "Do not print what is there in the beginning.")
	set.BoolVar(&f.diff, "diff", false, "Print below each changed object what changed.")
	set.BoolVar(&f.wait, "wait", false,
		"Wait for types that do not exist yet, even if none does; for as long as --timeout says.")
	set.BoolVar(&f.timestamps, "timestamps", false,
		"Print with each event when it came; in json and yaml as its time.")
	set.BoolVar(&f.managers, "managers", false,
		"Print with each event who made it: the field managers of what was written. Costs memory, for they have to be kept.")
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
		return o, exit.Usagef("--color always goes with tables: leave out --output, or give wide")
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
