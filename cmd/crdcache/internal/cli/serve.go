package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/local"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/dynamicinformer"
)

type serveFlags struct {
	reader *session.ReadFlags
	idle   time.Duration
	all    bool
	detach bool
	web    webFlags
}

func newServe(streams genericiooptions.IOStreams) *cobra.Command {
	f := &serveFlags{reader: session.NewReadFlags()}
	cmd := &cobra.Command{
		Use:        "serve [TYPE... | --all] [flags]",
		SuggestFor: []string{"server", "daemon", "start"},
		Short:      "Keep types in memory for the commands that follow",
		Long: "Keep the objects of the types, with the indexes of --config, and answer dump, query, stats, tree and watch from them,\n" +
			"until an interrupt, 'serve stop', or nobody has asked for as long as --idle. Those find the server by themselves where\n" +
			"they are for the same cluster, as the same user. It reads with the rights of the kubeconfig, and listens on a socket\n" +
			"that only the user may open.\n\n" +
			"The types are kept in all namespaces, or with --namespace in one. A TYPE may be a pattern: what it stands for is\n" +
			"kept as it comes, and dropped as it goes; so are all types with --all. Without either the types are those of\n" +
			"--config, also those that are installed later.\n\n" +
			"With --detach the server goes on in the background. The command returns when it answers, and tells where its log\n" +
			"is, or why it does not answer.\n\n" +
			"With --web the server also shows what it keeps in a browser of this machine, with the indexes and references of\n" +
			"--config. The link that is printed lets one browser in, once; 'serve status' prints another one.\n\n" +
			"With --from and --web the page shows files, all types of theirs or those that are named, and what changes in them as\n" +
			"they are saved. That ends with an interrupt or --idle. Commands with --from read files by themselves, and find no server.",
		Example: "  crdcache serve certificates.cert-manager.io --config indexes.yaml\n" +
			"  crdcache serve --config indexes.yaml --detach --idle 1h\n" +
			"  crdcache serve '*.demo.crdcache.dev' --idle 30m\n" +
			"  crdcache serve '*.demo.crdcache.dev' --config indexes.yaml --web\n" +
			"  crdcache serve --from testdata --web\n" +
			"  crdcache serve status",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && f.all:
				return exit.Usagef("--all and types exclude each other: give one of them")
			case len(args) > 0 || f.all || cmd.Flags().Changed("config") || cmd.Flags().Changed("from"):
				return nil
			}
			return exit.Usagef("name at least one type, as in '%s certificates.cert-manager.io', or give --config, whose types are kept, or --all", cmd.CommandPath())
		},
		RunE: runs(streams, f.toOptions),
	}
	set := cmd.Flags()
	f.reader.AddNamed(set)
	set.DurationVar(&f.idle, "idle", 0, "End when nobody has asked for as long; 0: never. An open page asks.")
	set.BoolVar(&f.all, "all", false, "Keep all types that can be listed and watched.")
	set.BoolVar(&f.detach, "detach", false, "Go on in the background, once the server answers.")
	f.web.add(cmd)
	f.reader.Complete(cmd, true)
	cmd.AddCommand(newServeStatus(streams), newServeStop(streams))
	for _, sub := range cmd.Commands() {
		sub.DisableFlagsInUseLine = true
	}
	return cmd
}

// serveOptions are the validated flags and arguments of serve.
type serveOptions struct {
	*session.Reader
	idle      time.Duration
	namespace string
	web       *webOptions // nil without --web
	// fromConfig is set if the config determines the types.
	declared bool
	detached []string // arguments of the background process; nil without --detach
}

func (f *serveFlags) toOptions(cmd *cobra.Command, args []string,
	streams genericiooptions.IOStreams) (*serveOptions, error) {
	if f.idle < 0 {
		return nil, exit.Usagef("--idle is %v: it must not be negative; 0 is for ever", f.idle)
	}
	page, err := f.web.toOptions()
	if err != nil {
		return nil, err
	}
	offline := cmd.Flags().Changed("from")
	if err := f.checkFiles(cmd, offline); err != nil {
		return nil, err
	}
	if f.all || offline && len(args) == 0 {
		args = []string{"*"}
	}
	read, err := f.reader.Reader(cmd.Context(), args, dynamicinformer.ResourceOptions{}, streams)
	if err != nil {
		return nil, err
	}
	o := &serveOptions{Reader: read, idle: f.idle, web: page, declared: len(args) == 0}
	if o.declared {
		if err := read.UseTypesOfConfig(); err != nil {
			return nil, err
		}
	}
	if f.detach {
		line, _ := cmd.Context().Value(commandLine{}).([]string)
		o.detached = undetached(line)
	}
	if named := cmd.Flags().Lookup("namespace"); named.Value.String() != "" {
		o.namespace = read.Target.Namespace
	}
	return o, nil
}

// checkFiles rejects flags that are incompatible with --from.
func (f *serveFlags) checkFiles(cmd *cobra.Command, offline bool) error {
	if !offline {
		return nil
	}
	if !f.web.on {
		return exit.Usagef("--from takes --web: commands read files as fast by themselves, and only the page shows what is kept of them")
	}
	if quiet := cmd.Flags().Lookup("quiet"); quiet.Value.String() == "true" {
		return exit.Usagef("--from and --quiet exclude each other: nobody would hear of the link to the page")
	}
	if cmd.Flags().Changed("detach") {
		return exit.Usagef("--from and --detach exclude each other: what is kept of files ends with the command")
	}
	return nil
}

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

// serverCommand is a request to the local cache server.
type asking struct {
	*session.Target
	ask func(context.Context, *local.Client) error
}

// newServerCommand completes a command that sends a request to the local cache server.
func newServeAsk(streams genericiooptions.IOStreams, cmd *cobra.Command,
	ask func(context.Context, *local.Client) error) *cobra.Command {
	f := session.NewServerFlags()
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return exit.Usagef("%q is not needed: '%s' takes no arguments", args[0], cmd.CommandPath())
		}
		return nil
	}
	cmd.RunE = runs(streams, func(cmd *cobra.Command, _ []string,
		streams genericiooptions.IOStreams) (*asking, error) {
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
