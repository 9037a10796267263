package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crdcache/crdcache/sandbox/internal/controlplane"
)

type upOptions struct {
	startOptions
	wait bool
}

func newUp() *cobra.Command {
	var o upOptions
	c := &cobra.Command{
		Use:   "up --dir DIR",
		Short: "Start a sandbox",
		Long: `Start etcd and kube-apiserver in DIR, wait until the API server is ready, apply
what --load names, and print the path of the kubeconfig.

The command then returns and leaves a small supervisor behind, which "sandbox
down" ends. With --wait it stays in the foreground instead, and stops everything
when it is interrupted (SIGINT, SIGTERM) or when "sandbox down" is called.

The kubeconfig has two contexts: sandbox-admin (current), who may do everything,
and sandbox-unprivileged, who may do nothing but discover the API.

A directory can be used again after "sandbox down": its data is still there.`,
		Example: `  export KUBECONFIG=$(sandbox up --dir /tmp/box --load config/crd)
  kubectl get crds
  sandbox down --dir /tmp/box`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	addDirFlag(c, &o.config.Dir)
	o.addFlags(c.Flags())
	c.Flags().BoolVar(&o.wait, "wait", false,
		"stay in the foreground until interrupted, then stop everything")
	return c
}

func (o *upOptions) run(ctx context.Context) error {
	manifests, err := o.readManifests()
	if err != nil {
		return err
	}
	if !o.wait {
		return startDetached(ctx, o.config, func(kubeconfig string) error {
			return applyManifests(ctx, kubeconfig, manifests)
		})
	}
	cp, err := controlplane.Start(ctx, o.config)
	if err != nil {
		return err
	}
	defer cp.Stop()
	kubeconfig := cp.Layout().Kubeconfig()
	if err := applyManifests(ctx, kubeconfig, manifests); err != nil {
		return err
	}
	fmt.Println(kubeconfig)
	select {
	case <-ctx.Done():
	case <-cp.StopRequested():
	}
	return nil
}

// startOptions are the options of commands that start a sandbox.
type startOptions struct {
	config controlplane.Config
	load   []string
}

func (o *startOptions) addFlags(flags *pflag.FlagSet) {
	flags.IntVar(&o.config.Port, "port", 0, "port of the API server; 0 picks a free one")
	flags.StringArrayVar(&o.load, "load", nil,
		"manifest, or directory of manifests, to apply once the server is ready; repeatable")
	flags.StringArrayVar(&o.config.APIServerArgs, "apiserver-arg", nil,
		"argument for kube-apiserver, like feature-gates=Name=true; repeatable")
	flags.StringArrayVar(&o.config.EtcdArgs, "etcd-arg", nil, "argument for etcd; repeatable")
	flags.StringVar(&o.config.Binaries, "binaries", "",
		"folder of etcd and kube-apiserver, as build-version.sh makes; the default is the folder of this program")
	flags.BoolVar(&o.config.AuditLog, "audit-log", false,
		"write one line per API request to audit.log in the directory")
}
