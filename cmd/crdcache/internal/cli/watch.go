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
		Args:       session.AtLeastOne("type", "certificates.cert-manager.io"),
		RunE:       session.RunE(o.complete, o.run),
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
	set.BoolVar(&o.options.WaitForTypes, "wait", false, "")
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
	o.readers, err = o.flags.Readers(cmd.Context(), args, o.styleFlags.InformerOptions(), o.streams)
	return err
}

func (o *watchVerb) run(ctx context.Context) error { return follow.Run(ctx, o.readers, o.options) }
