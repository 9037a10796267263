package main

import (
	"github.com/spf13/pflag"

	"github.com/crdcache/crdcache/sandbox/internal/controlplane"
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
