// Command crdcached caches types of a cluster and serves them as the Kubernetes API to users with access.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/pflag"
	"k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/crdcache/crdcache/serving/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:])
	logs.FlushLogs()
	if err != nil {
		fmt.Fprintln(os.Stderr, "crdcached:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	options, logging := server.NewOptions(), logs.NewOptions()
	sections := options.Flags()
	logsapi.AddFlags(logging, sections.FlagSet("logs"))
	printVersion := sections.FlagSet("crdcached").Bool("version", false, "Print the version and exit.")
	set := pflag.NewFlagSet("crdcached", pflag.ContinueOnError)
	set.SetNormalizeFunc(flag.WordSepNormalizeFunc)
	for _, name := range sections.Order {
		set.AddFlagSet(sections.FlagSet(name))
	}
	set.Usage = func() { printHelp(os.Stdout, sections) }
	if err := set.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil
		}
		return fmt.Errorf("%w; see crdcached --help", err)
	}
	if set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: name types with --type", set.Arg(0))
	}
	if *printVersion {
		_, err := fmt.Println(version())
		return err
	}
	if err := logsapi.ValidateAndApply(logging, nil); err != nil {
		return err
	}
	if err := options.Complete(set); err != nil {
		return err
	}
	s, err := server.New(ctx, options)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

func printHelp(w io.Writer, sections flag.NamedFlagSets) {
	fmt.Fprint(
		w, "crdcached caches types of a cluster and serves them as the Kubernetes API to users with access.\n\n"+
			"  crdcached --config crdcached.yaml --tls-cert-file tls.crt --tls-private-key-file tls.key\n"+
			"  crdcached --kubeconfig ~/.kube/config --type '*.example.com' --bind-address 127.0.0.1\n")
	flag.PrintSections(w, sections, 0) // lines are not wrapped
}

func version() string {
	text := "(devel)"
	if buildInfo, ok := debug.ReadBuildInfo(); ok {
		text = cmp.Or(buildInfo.Main.Version, text)
		for _, setting := range buildInfo.Settings {
			if setting.Key == "vcs.revision" {
				text += " " + setting.Value
			}
		}
	}
	return fmt.Sprintf("crdcached %s %s %s/%s", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
