// Package serve implements the command that caches types for other commands and for the page.
package serve

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/localserver"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/naming"
)

type verb struct {
	streams        genericiooptions.IOStreams
	flags          session.ReadFlags
	idleTimeout    time.Duration
	all            bool
	detached       bool
	web            bool
	webAddress     string
	showSecrets    bool
	metricsAddress string
	kubeconfigPath string

	api             *filesAPI // nil without --write-kubeconfig
	readers         []*session.Reader
	group           *dynamicinformer.Group // of several clusters
	*session.Reader                        // of the current cluster
	// onlyNamespace is the only cached namespace. Empty means all.
	onlyNamespace string
	// typeArgs is empty if hasConfigTypes is set: the config determines the types.
	typeArgs        []string
	hasConfigTypes  bool
	webAddrPort     netip.AddrPort
	metricsAddrPort netip.AddrPort // invalid without --metrics-address
}

func New(streams genericiooptions.IOStreams) *cobra.Command {
	o := &verb{streams: streams}
	cmd := &cobra.Command{
		Use:        "serve [TYPE... | --all] [flags]",
		SuggestFor: []string{"server", "daemon", "start"},
		Short:      "Cache types in memory for other commands",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && o.all:
				return session.Usagef("--all and types cannot be used together: use one of them")
			case len(args) > 0 || o.all || cmd.Flags().Changed("config") || cmd.Flags().Changed("from"):
				return nil
			}
			return session.Usagef("name at least one type, as in '%s certificates.cert-manager.io', or use --config or --all", cmd.CommandPath())
		},
		RunE: session.RunE(o.complete, o.run),
	}
	o.flags.Add(cmd, true)
	o.flags.AddContexts(cmd)
	set := cmd.Flags()
	set.DurationVar(&o.idleTimeout, "idle", 0, "")
	set.BoolVar(&o.all, "all", false, "Cache all types with the verbs list and watch.")
	set.BoolVar(&o.detached, "detach", false, "Run in the background.")
	set.BoolVar(&o.web, "web", false, "Serve a web page on this machine. Its link is printed to stderr.")
	set.StringVar(&o.webAddress, "web-address", "127.0.0.1:0", "")
	set.StringVar(&o.metricsAddress, "metrics-address", "", "")
	session.CompleteValues(cmd, "metrics-address", nil)
	set.StringVar(&o.kubeconfigPath, "write-kubeconfig", "", "")
	set.BoolVar(&o.showSecrets, "show-secrets", false, "Show the values of Secrets on the page.")
	session.CompleteValues(cmd, "web-address", nil)
	cmd.AddCommand(newServeStatus(streams), newServeStop(streams))
	return cmd
}

func (o *verb) complete(cmd *cobra.Command, args []string) (err error) {
	if o.idleTimeout < 0 {
		return session.Usagef("--idle is %v: it must not be negative; 0 means no limit", o.idleTimeout)
	}
	fromFiles := cmd.Flags().Changed("from")
	if err := o.checkWeb(cmd.Flags()); err != nil {
		return err
	}
	if cmd.Flags().Changed("metrics-address") {
		if fromFiles {
			return session.Usagef("--from and --metrics-address cannot be used together: metrics are about a cluster")
		}
		if o.metricsAddrPort, err = ParseLoopback("metrics-address", o.metricsAddress,
			"the metrics are"); err != nil {
			return err
		}
	}
	if o.all || fromFiles && len(args) == 0 {
		args = []string{"*"}
	}
	o.readers, err = o.flags.Readers(cmd.Context(), args, dynamicinformer.ResourceOptions{}, o.streams)
	if err != nil {
		return err
	}
	o.Reader = o.readers[0]
	if o.group, err = dynamicinformer.NewGroup(dynamicinformer.GroupOptions{}); err != nil {
		return err
	}
	if o.metricsAddrPort.IsValid() {
		if err := o.Config.CheckMetrics(); err != nil {
			return err
		}
	}
	if o.typeArgs, o.hasConfigTypes = args, len(args) == 0; o.hasConfigTypes {
		if err := naming.Each(o.readers, (*session.Reader).UseConfigTypes); err != nil {
			return err
		}
	}
	if cmd.Flags().Lookup("namespace").Value.String() != "" {
		o.onlyNamespace = o.Namespace
	}
	return nil
}

// checkWeb validates the flags of the web page, and rejects flags that are incompatible with --from.
func (o *verb) checkWeb(set *pflag.FlagSet) (err error) {
	fromFiles := set.Changed("from")
	for _, name := range []string{"web-address", "show-secrets"} {
		if !o.web && set.Changed(name) {
			return session.Usagef("--%s has no effect without --web", name)
		}
	}
	if o.web {
		if o.webAddrPort, err = ParseLoopback("web-address", o.webAddress, "the page is"); err != nil {
			return err
		}
	}
	switch {
	case o.kubeconfigPath != "" && !fromFiles:
		return session.Usagef("--write-kubeconfig needs --from: kubectl reads a cluster without a server")
	case !fromFiles:
		return nil
	case !o.web && o.kubeconfigPath == "":
		return session.Usagef("--from needs --web or --write-kubeconfig: commands read files without a server")
	case o.web && set.Lookup("quiet").Value.String() == "true":
		return session.Usagef("--from and --quiet cannot be used together: the link to the page would not be printed")
	case set.Changed("detach"):
		return session.Usagef("--from and --detach cannot be used together: a server for files runs in the foreground")
	}
	return nil
}

// ParseLoopback parses the value of a flag with an address of this machine.
func ParseLoopback(flag, text, subject string) (netip.AddrPort, error) {
	ipAddress := text
	if port, ok := strings.CutPrefix(text, "localhost:"); ok {
		ipAddress = "127.0.0.1:" + port
	}
	address, err := netip.ParseAddrPort(ipAddress)
	if err != nil || !address.Addr().IsLoopback() || address.Addr().Zone() != "" {
		return address, session.Usagef("--%s is %q: %s only for this machine: use a loopback address and a port, as in 127.0.0.1:8080", flag, text, subject)
	}
	return address, nil
}

func newServeStatus(streams genericiooptions.IOStreams) *cobra.Command {
	return newServerCommand(streams, &cobra.Command{
		Use:   "status [flags]",
		Short: "Show the state and the types of the cache server",
	}, func(ctx context.Context, client *localserver.Client) error {
		info, err := client.Info(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintln(streams.Out, print.Printable(info.String()))
		fmt.Fprintf(streams.Out, "socket: %s\n", print.Printable(client.Socket()))
		if info.ConfigStatus != "" {
			fmt.Fprintf(streams.Out, "config: %s\n", print.OneSafeLine(info.ConfigStatus))
		}
		if info.Page {
			link, err := client.LoginLink(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(streams.Out, "page: %s (one-time link for one browser)\n", print.Printable(link))
		}
		for _, c := range info.Warnings {
			print.Warnf(streams.Out, "%s: %s", c.Name, c.Reason)
		}
		w := printers.GetNewTabWriter(streams.Out)
		fmt.Fprintln(w, "TYPE\tNAMESPACE\tSTATE\tOBJECTS")
		for _, t := range info.Types {
			namespace := cmp.Or(t.Namespace, "<all>")
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
	}, func(ctx context.Context, client *localserver.Client) error {
		info, err := client.Stop(ctx)
		if err == nil {
			fmt.Fprintf(streams.Out, "process %d has ended\n", info.PID)
		}
		return err
	})
}

// newServerCommand completes a command that sends a request to the local cache server.
func newServerCommand(streams genericiooptions.IOStreams, cmd *cobra.Command,
	call func(context.Context, *localserver.Client) error) *cobra.Command {
	var flags session.ServerFlags
	flags.Add(cmd)
	cmd.Args = session.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		target, err := flags.Target(cmd.Context(), streams)
		if err != nil {
			return err
		}
		if target.ReadsFiles() {
			return session.Usagef("--from has no effect with %s", cmd.CommandPath())
		}
		client, err := localserver.NewClient(cmd.Context(), target.Rest)
		if err != nil {
			return err
		}
		ctx, cancel := target.WithTimeout(cmd.Context())
		defer cancel()
		return call(ctx, client)
	}
	return cmd
}
