package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/cli/flag"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/naming"
)

// Options are the options of a server. Create them with NewOptions.
type Options struct {
	// Kubeconfig selects the cluster to cache. This cluster also authenticates and authorizes users,
	// unless Authentication and Authorization name another file. Default: the service account of the pod.
	Kubeconfig string
	// Config is the config file. Complete reads it from the file of --config.
	Config Config
	// RequestTimeout limits requests other than watches.
	RequestTimeout time.Duration
	// MaxRequestsInFlight is the number of concurrent requests of all users, without watches. 0: no limit.
	MaxRequestsInFlight int
	// ShutdownDelay is how long requests are accepted after the stop signal. /readyz fails meanwhile.
	ShutdownDelay time.Duration

	SecureServing  *genericoptions.SecureServingOptionsWithLoopback
	Authentication *genericoptions.DelegatingAuthenticationOptions
	Authorization  *genericoptions.DelegatingAuthorizationOptions
	Audit          *genericoptions.AuditOptions

	flags configFlags
}

// configFlags are the flags that override the config file.
type configFlags struct {
	file                                        string
	types, indexConfigs                         []string
	storage, memoryBudget, persistenceDirectory string
	secrets, page                               bool
}

// NewOptions returns the defaults: port 8443, and a self-signed certificate in memory.
func NewOptions() *Options {
	secure := genericoptions.NewSecureServingOptions()
	secure.BindPort = 8443
	secure.ServerCert.PairName, secure.ServerCert.CertDirectory = "crdcached", ""
	return &Options{
		Config: DefaultConfig(), RequestTimeout: time.Minute, MaxRequestsInFlight: 400,
		SecureServing:  secure.WithLoopback(),
		Authentication: genericoptions.NewDelegatingAuthenticationOptions(),
		Authorization:  genericoptions.NewDelegatingAuthorizationOptions(),
		Audit:          genericoptions.NewAuditOptions(),
	}
}

// lineList separates the elements of a list also by line breaks. pflag ignores all but the first line.
type lineList struct{ pflag.Value }

func (l lineList) Set(text string) error {
	return l.Value.Set(strings.ReplaceAll(strings.TrimSpace(text), "\n", ","))
}

func (o *Options) AddFlags(flags *pflag.FlagSet) {
	sections := o.Flags()
	for _, name := range sections.Order {
		flags.AddFlagSet(sections.FlagSet(name))
	}
}

// Flags returns the flags in sections for help. The first section has the flags of crdcached.
func (o *Options) Flags() flag.NamedFlagSets {
	var sections flag.NamedFlagSets
	flags := sections.FlagSet("crdcached")
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "",
		"Kubeconfig of the cluster to cache. Default: the service account of the pod.")
	flags.StringVar(&o.flags.file, "config", "",
		"File with a ServerConfig. Other flags take precedence over it.")
	flags.StringSliceVar(&o.flags.types, "type", nil,
		"Type to cache, in kubectl's syntax, or a pattern such as '*.example.com'. Can be repeated.")
	flags.StringSliceVar(&o.flags.indexConfigs, "index-config", nil,
		"File with index configs. Their types are cached. Can be repeated.")
	flags.StringVar(&o.flags.storage, "storage", "",
		"Storage mode of objects in memory: adaptive (default), compressed or packed.")
	flags.StringVar(&o.flags.memoryBudget, "memory-budget", "",
		"Target size of the caches, such as 2Gi. Default: no budget.")
	flags.StringVar(&o.flags.persistenceDirectory, "persistence-dir", "",
		"Folder that stores the cached objects for the next start.")
	flags.BoolVar(&o.flags.secrets, "secrets", false, "Cache Secrets if a type or pattern selects them.")
	flags.BoolVar(&o.flags.page, "page", false, "Serve the page for browsers at /page/open.")
	flags.DurationVar(&o.RequestTimeout, "request-timeout", o.RequestTimeout,
		"Timeout of requests other than watches.")
	flags.IntVar(&o.MaxRequestsInFlight, "max-requests-inflight", o.MaxRequestsInFlight,
		"Number of concurrent requests other than watches; 0: no limit.")
	flags.DurationVar(&o.ShutdownDelay, "shutdown-delay-duration", o.ShutdownDelay,
		"How long to serve requests after a stop signal, while /readyz fails.")
	for _, name := range []string{"type", "index-config"} {
		f := flags.Lookup(name)
		f.Value, f.DefValue = lineList{f.Value}, "" // which help does not print
	}
	flags = sections.FlagSet("secure serving")
	o.SecureServing.AddFlags(flags)
	flags.Lookup("secure-port").Usage = "The port to serve HTTPS on; 0: a free port, which is logged."
	o.Authentication.AddFlags(sections.FlagSet("authentication"))
	o.Authorization.AddFlags(sections.FlagSet("authorization"))
	o.Audit.AddFlags(sections.FlagSet("audit"))
	return sections
}

// Complete reads the config file of --config, applies the other flags to the config, and validates the
// options.
func (o *Options) Complete(flags *pflag.FlagSet) error {
	if o.flags.file != "" {
		config, err := LoadConfig(o.flags.file)
		if err != nil {
			return err
		}
		o.Config = config
	}
	for name, apply := range map[string]func() error{
		"type":         func() error { o.Config.Types = o.flags.types; return nil },
		"index-config": func() error { o.Config.IndexConfigs = o.flags.indexConfigs; return nil },
		"storage":      func() error { return o.Config.Storage.UnmarshalText([]byte(o.flags.storage)) },
		"memory-budget": func() (err error) {
			o.Config.MemoryBudget, err = naming.ParseQuantity(o.flags.memoryBudget)
			return err
		},
		"persistence-dir": func() error { o.Config.PersistenceDirectory = o.flags.persistenceDirectory; return nil },
		"secrets":         func() error { o.Config.Secrets = o.flags.secrets; return nil },
		"page":            func() error { o.Config.Page.Enabled = o.flags.page; return nil },
	} {
		if !flags.Changed(name) {
			continue
		}
		if err := apply(); err != nil {
			return fmt.Errorf("--%s: %w", name, err)
		}
	}
	return o.Validate()
}

// Validate returns all errors of the options.
func (o *Options) Validate() error {
	errs := slices.Concat([]error{o.Config.Validate()}, o.SecureServing.Validate(),
		o.Authentication.Validate(), o.Authorization.Validate(), o.Audit.Validate())
	if o.RequestTimeout <= 0 {
		errs = append(errs, fmt.Errorf("--request-timeout: %v is not positive", o.RequestTimeout))
	}
	if o.MaxRequestsInFlight < 0 {
		errs = append(errs, fmt.Errorf("--max-requests-inflight: %d is negative; 0 is no limit",
			o.MaxRequestsInFlight))
	}
	return errors.Join(errs...)
}

func (o *Options) clientConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig of the cluster: %w", err)
	}
	config.QPS = -1 // the API server's priority and fairness limits it
	config.UserAgent = "crdcached"
	return config, nil
}

func (c *Config) storage() dynamicinformer.Storage {
	return dynamicinformer.Storage{Mode: c.Storage, Compression: compression, CompressLists: true}
}
