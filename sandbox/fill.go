package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdcache/crdcache/sandbox/internal/controlplane"
)

// serverOptions select the API server.
type serverOptions struct {
	dir        string
	kubeconfig string
}

func (o *serverOptions) addFlags(c *cobra.Command) {
	c.Flags().StringVar(&o.dir, "dir", "", "directory of the sandbox to write to")
	c.Flags().StringVar(&o.kubeconfig, "kubeconfig", "",
		"write to the API server of a kubeconfig's current context instead")
	c.MarkFlagsOneRequired("dir", "kubeconfig")
	c.MarkFlagsMutuallyExclusive("dir", "kubeconfig")
}

// restConfig returns the client config of the API server. The second result is the client of the running
// sandbox, or nil with --kubeconfig.
func (o *serverOptions) restConfig() (*rest.Config, *controlplane.Client, error) {
	var client *controlplane.Client
	kubeconfig := o.kubeconfig
	if o.dir != "" {
		var err error
		if client, err = controlplane.Dial(o.dir); err != nil {
			return nil, nil, err
		}
		kubeconfig = client.Layout().Kubeconfig()
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	return config, client, err
}

type fillOptions struct {
	serverOptions
	FillOptions
	size string
	via  string
}

const (
	viaEtcd = "etcd"
	viaAPI  = "api"
)

func newFill() *cobra.Command {
	var o fillOptions
	c := &cobra.Command{
		Use:   "fill --dir DIR --count N",
		Short: "Write many synthetic Certificates, fast",
		Long: `Write synthetic Certificates and report the rate on stderr. The server needs
cert-manager's CRDs. The objects look like real ones: small is about 2 KB of
compact JSON, large about 10 KB.

The objects depend on --seed alone. Objects that exist already are left alone.

With --dir objects go straight into the sandbox's etcd, as the API server would
have stored them; with --kubeconfig, or --via api, they go through the API.`,
		Example: `  sandbox fill --dir /tmp/box --count 50000 --namespaces 50`,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.serverOptions.addFlags(c)
	c.Flags().IntVar(&o.Count, "count", 1000, "number of objects")
	c.Flags().IntVar(&o.Namespaces, "namespaces", 10,
		"number of namespaces to spread them over: team-000, team-001, …")
	c.Flags().StringVar(&o.size, "size", string(Small), "small or large")
	c.Flags().Uint64Var(&o.Seed, "seed", 1, "determines names and contents")
	c.Flags().StringVar(&o.via, "via", "",
		"etcd or api; the default is etcd with --dir, and api with --kubeconfig")
	return c
}

func (o *fillOptions) run(ctx context.Context) error {
	var err error
	if o.Size, err = ParseSize(o.size); err != nil {
		return err
	}
	config, sandbox, err := o.restConfig()
	if err != nil {
		return err
	}
	etcd, err := o.etcd(sandbox)
	if err != nil {
		return err
	}
	if etcd != nil {
		defer etcd.Close()
	}
	result, err := Fill(ctx, config, etcd, o.FillOptions)
	if result.Created+result.Existing > 0 {
		fmt.Fprintln(os.Stderr, fillSummary(result))
	}
	return err
}

// etcd returns a client of the sandbox's etcd, or nil if objects are written through the API.
func (o *fillOptions) etcd(sandbox *controlplane.Client) (*clientv3.Client, error) {
	switch {
	case o.via == viaAPI, o.via == "" && sandbox == nil:
		return nil, nil
	case o.via != "" && o.via != viaEtcd:
		return nil, fmt.Errorf("unknown --via %q: want %q or %q", o.via, viaEtcd, viaAPI)
	case sandbox == nil:
		return nil, errors.New("--via etcd needs --dir")
	default:
		return controlplane.DialEtcd(sandbox.EtcdURL())
	}
}

func fillSummary(r FillResult) string {
	summary := fmt.Sprintf("wrote %d Certificates in %s (%.0f/s)", r.Created,
		r.Elapsed.Round(10*time.Millisecond), float64(r.Created)/r.Elapsed.Seconds())
	if r.Bytes > 0 && r.Created > 0 {
		summary += fmt.Sprintf(", %d bytes each on average", r.Bytes/int64(r.Created))
	}
	if r.Existing > 0 {
		summary += fmt.Sprintf("; %d existed already", r.Existing)
	}
	return summary
}
