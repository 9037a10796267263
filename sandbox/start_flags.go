package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/crdcache/crdcache/sandbox/internal/controlplane"
	"github.com/crdcache/crdcache/sandbox/internal/loader"
)

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

// readManifests reads the files of --load before anything starts, so that errors are found early.
func (o *startOptions) readManifests() ([]loader.Document, error) {
	return loader.ReadPaths(o.load)
}

// applyManifests loads documents into the sandbox of the kubeconfig.
func applyManifests(ctx context.Context, kubeconfig string, docs []loader.Document) error {
	if len(docs) == 0 {
		return nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	result, err := loader.Load(ctx, config, docs)
	if err != nil {
		return fmt.Errorf("load manifests: %w", err)
	}
	fmt.Fprintf(os.Stderr, "loaded %d CRDs, %d namespaces, %d other objects\n",
		result.CRDs, result.Namespaces, result.Objects)
	return nil
}
