package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
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
		Short:      "Cache types in memory for other commands",
		Long: "Cache the objects of types and answer dump, query, stats, tree and watch from\n" +
			"the cache, until an interrupt, 'serve stop', or --idle without a request.\n" +
			"Commands for the same cluster and user find the server without configuration.\n\n" +
			"A TYPE can be a pattern: matching types are added and removed as they are\n" +
			"installed and deleted. Without types, the types of --config are cached.",
		Annotations: detailsAnnotation("The server reads with the kubeconfig's permissions and listens on a socket that\n" +
			"only the user can open. It caches all namespaces, or the one of --namespace.\n\n" +
			"With --detach the server runs in the background. The command returns when the\n" +
			"server answers and prints the path of its log, or the reason why it does not\n" +
			"answer.\n\n" +
			"With --web the server also serves a web page of its objects, indexes and\n" +
			"references on this machine. The printed link logs in one browser once; 'serve\n" +
			"status' prints a new link.\n\n" +
			"With --from and --web the page shows files and their changes, by default all\n" +
			"types in the files. Other commands with --from read files without a server."),
		Example: "  crdcache serve certificates.cert-manager.io --config indexes.yaml\n" +
			"  crdcache serve --config indexes.yaml --detach --idle 1h\n" +
			"  crdcache serve '*.demo.crdcache.dev' --idle 30m\n" +
			"  crdcache serve '*.demo.crdcache.dev' --config indexes.yaml --web\n" +
			"  crdcache serve --from testdata --web\n" +
			"  crdcache serve status",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && f.all:
				return exit.Usagef("--all and types cannot be used together: use one of them")
			case len(args) > 0 || f.all || cmd.Flags().Changed("config") || cmd.Flags().Changed("from"):
				return nil
			}
			return exit.Usagef("name at least one type, as in '%s certificates.cert-manager.io', or use --config or --all", cmd.CommandPath())
		},
		RunE: newRunE(streams, f.toOptions),
	}
	set := cmd.Flags()
	f.reader.AddNamed(set)
	set.DurationVar(&f.idle, "idle", 0, "Stop after this time without a request; 0 means never. An open browser page counts as a request.")
	set.BoolVar(&f.all, "all", false, "Cache all types that can be listed and watched.")
	set.BoolVar(&f.detach, "detach", false, "Run in the background.")
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
	fromConfig bool
	background []string // arguments of the background process; nil without --detach
}

func (f *serveFlags) toOptions(cmd *cobra.Command, args []string,
	streams genericiooptions.IOStreams) (*serveOptions, error) {
	if f.idle < 0 {
		return nil, exit.Usagef("--idle is %v: it must not be negative; 0 means no limit", f.idle)
	}
	page, err := f.web.toOptions()
	if err != nil {
		return nil, err
	}
	fromFiles := cmd.Flags().Changed("from")
	if err := f.checkFiles(cmd, fromFiles); err != nil {
		return nil, err
	}
	if f.all || fromFiles && len(args) == 0 {
		args = []string{"*"}
	}
	read, err := f.reader.Reader(cmd.Context(), args, dynamicinformer.ResourceOptions{}, streams)
	if err != nil {
		return nil, err
	}
	o := &serveOptions{Reader: read, idle: f.idle, web: page, fromConfig: len(args) == 0}
	if o.fromConfig {
		if err := read.UseTypesOfConfig(); err != nil {
			return nil, err
		}
	}
	if f.detach {
		line, _ := cmd.Context().Value(commandLine{}).([]string)
		o.background = withoutDetach(line)
	}
	if named := cmd.Flags().Lookup("namespace"); named.Value.String() != "" {
		o.namespace = read.Target.Namespace
	}
	return o, nil
}

// checkFiles rejects flags that are incompatible with --from.
func (f *serveFlags) checkFiles(cmd *cobra.Command, fromFiles bool) error {
	if !fromFiles {
		return nil
	}
	if !f.web.enabled {
		return exit.Usagef("--from needs --web: commands read files without a server")
	}
	if quiet := cmd.Flags().Lookup("quiet"); quiet.Value.String() == "true" {
		return exit.Usagef("--from and --quiet cannot be used together: the link to the page would not be printed")
	}
	if cmd.Flags().Changed("detach") {
		return exit.Usagef("--from and --detach cannot be used together: a server for files runs in the foreground")
	}
	return nil
}

func newServeStatus(streams genericiooptions.IOStreams) *cobra.Command {
	return newServerCommand(streams, &cobra.Command{
		Use:   "status [flags]",
		Short: "Show the state and the types of the cache server",
		Long: "Show the cache server of this cluster and user, its types, and a new link to its\n" +
			"web page. Without a server the exit code is 1.",
	}, func(ctx context.Context, client *localserver.Client) error {
		info, err := client.Info(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(streams.Out, print.Printable(info.String()))
		fmt.Fprintf(streams.Out, "socket: %s\n", print.Printable(client.Socket()))
		if info.Page {
			link, err := client.LoginLink(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(streams.Out, "page: %s (one-time link for one browser)\n", print.Printable(link))
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
			fmt.Fprintf(w, "%s\t\tnot cached: %s\t\n", a.Name, print.OneSafeLine(a.Reason))
		}
		return w.Flush()
	})
}

func newServeStop(streams genericiooptions.IOStreams) *cobra.Command {
	return newServerCommand(streams, &cobra.Command{
		Use:   "stop [flags]",
		Short: "Stop the cache server",
		Long: "Stop the cache server of this cluster and user, and wait until another one can\n" +
			"start. Without a server the exit code is 1.",
	}, func(ctx context.Context, client *localserver.Client) error {
		info, err := client.Stop(ctx)
		if err == nil {
			fmt.Fprintf(streams.Out, "process %d has ended\n", info.PID)
		}
		return err
	})
}

// serverCommand is a request to the local cache server.
type serverCommand struct {
	*session.Target
	call func(context.Context, *localserver.Client) error
}

// newServerCommand completes a command that sends a request to the local cache server.
func newServerCommand(streams genericiooptions.IOStreams, cmd *cobra.Command,
	ask func(context.Context, *localserver.Client) error) *cobra.Command {
	f := session.NewServerFlags()
	cmd.Args = noArgs
	cmd.RunE = newRunE(streams, func(cmd *cobra.Command, _ []string,
		streams genericiooptions.IOStreams) (*serverCommand, error) {
		target, err := f.Target(cmd.Context(), streams)
		if err == nil && target.ReadsFiles() {
			err = exit.Usagef("--from has no effect with %s", cmd.CommandPath())
		}
		return &serverCommand{target, ask}, err
	})
	f.Add(cmd.Flags())
	f.Complete(cmd)
	return cmd
}

func (o *serverCommand) run(ctx context.Context) error {
	client, err := localserver.NewClient(ctx, o.Config)
	if err != nil {
		return err
	}
	ctx, cancel := o.Limit(ctx)
	defer cancel()
	return o.call(ctx, client)
}
