package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/local"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

// newServeStatus returns the command that says what the server keeps.
func newServeStatus(streams genericiooptions.IOStreams) *cobra.Command {
	return newServeAsk(streams, &cobra.Command{
		Use:   "status [flags]",
		Short: "Say what the server of this cluster and user keeps",
		Long: "Say what the server of this cluster and user keeps, with a new link to its page, if it has one. Without a server the\n" +
			"exit code is 1.",
	}, func(ctx context.Context, client *local.Client) error {
		info, err := client.Info(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(streams.Out, print.Printable(info.String()))
		fmt.Fprintf(streams.Out, "socket: %s\n", print.Printable(client.Socket()))
		if info.Page {
			link, err := client.Link(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(streams.Out, "page: %s (lets one browser in, once)\n", print.Printable(link))
		}
		w := printers.GetNewTabWriter(streams.Out)
		fmt.Fprintln(w, "TYPE\tNAMESPACE\tSTATE\tOBJECTS")
		for _, t := range info.Types {
			namespace := t.Namespace
			if namespace == "" {
				namespace = "<all>"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", t.Resource, namespace, t.State, t.Objects)
		}
		for _, a := range info.Absent {
			fmt.Fprintf(w, "%s\t\tnot kept: %s\t\n", a.Name, print.Line(a.Why))
		}
		return w.Flush()
	})
}

// newServeStop returns the command that ends the server.
func newServeStop(streams genericiooptions.IOStreams) *cobra.Command {
	return newServeAsk(streams, &cobra.Command{
		Use:   "stop [flags]",
		Short: "End the server of this cluster and user",
		Long: "End the server of this cluster and user, and return when it has ended, so that another one may\n" +
			"begin. Without one the exit code is 1.",
	}, func(ctx context.Context, client *local.Client) error {
		info, err := client.Stop(ctx)
		if err == nil {
			fmt.Fprintf(streams.Out, "process %d has ended\n", info.PID)
		}
		return err
	})
}

// asking is a question to the server.
type asking struct {
	*session.Target
	ask func(context.Context, *local.Client) error
}

// newServeAsk completes a command that asks the server something.
func newServeAsk(streams genericiooptions.IOStreams, cmd *cobra.Command, ask func(context.Context, *local.Client) error) *cobra.Command {
	f := session.NewServerFlags()
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return exit.Usagef("%q is not needed: '%s' takes no arguments", args[0], cmd.CommandPath())
		}
		return nil
	}
	cmd.RunE = runs(streams, func(cmd *cobra.Command, _ []string, streams genericiooptions.IOStreams) (*asking, error) {
		target, err := f.Target(cmd.Context(), streams)
		if err == nil && target.Offline() {
			err = exit.Usagef("--from has no effect with %s", cmd.CommandPath())
		}
		return &asking{target, ask}, err
	})
	f.Add(cmd.Flags())
	f.Complete(cmd)
	return cmd
}

func (o *asking) run(ctx context.Context) error {
	client, err := local.NewClient(ctx, o.Config)
	if err != nil {
		return err
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	return o.ask(ctx, client)
}
