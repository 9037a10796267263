package server

import (
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/readapi/live"
)

// What a config file names itself.
const (
	ConfigAPIVersion = "crdcache.dev/v1alpha1"
	ConfigKind       = "ServerConfig"
)

// Config is what a config file says. DefaultConfig has the defaults.
type Config struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Types are names of types as kubectl takes them, and patterns such as "*.example.com". Of patterns those
	// types count that can be listed and watched, also when they are installed later. What IndexConfigs
	// declare is kept besides.
	Types []string `json:"types,omitempty"`
	// IndexConfigs are files with index configs.
	IndexConfigs []string `json:"indexConfigs,omitempty"`
	// Secrets lets Secrets be kept, where Types name them or a pattern matches. Default: they never are.
	Secrets bool `json:"secrets,omitempty"`
	// Storage is how objects are kept in memory: adaptive, compressed or packed. Default: adaptive.
	Storage dynamicinformer.StorageMode `json:"storage,omitempty"`
	// MemoryBudget is what the caches should come to, which storage adaptive keeps by compressing. Default:
	// no budget.
	MemoryBudget resource.Quantity `json:"memoryBudget,omitempty"`
	// PersistenceDirectory keeps what is cached for the next start. Secrets are never kept there. Default:
	// nothing is.
	PersistenceDirectory string `json:"persistenceDirectory,omitempty"`
	// History is how many changes of each type can be watched after the fact. Default: live.DefaultHistory.
	History int `json:"history,omitempty"`
	// Page says whether there is a page for browsers.
	Page PageConfig `json:"page,omitempty"`
	// TokenAudiences are the audiences of the bearer tokens that are accepted; a token needs one of them.
	// Default: those of the API server.
	TokenAudiences []string `json:"tokenAudiences,omitempty"`
	// Watches say how long watches last.
	Watches WatchConfig `json:"watches,omitempty"`
	// Limits bound what users take.
	Limits Limits `json:"limits,omitempty"`
}

// PageConfig is the part of a Config about the page. It is below /page, for users who may get that path, and
// shows to each what they may list.
type PageConfig struct {
	// Enabled serves it. Default: false.
	Enabled bool `json:"enabled,omitempty"`
	// Hosts are what the Host of a request may be, each a name with its port. Default: loopback addresses.
	Hosts []string `json:"hosts,omitempty"`
}

// WatchConfig is the part of a Config about watches. Each ends after a random time between Min and Max, so
// that lost rights take effect, or earlier where its client says so.
type WatchConfig struct {
	// Min and Max default to 5 and 10 minutes.
	Min metav1.Duration `json:"min,omitempty"`
	Max metav1.Duration `json:"max,omitempty"`
	// WriteTimeout is how long a client may take to read what is written at once. It is cut off then.
	// Default: 30 seconds.
	WriteTimeout metav1.Duration `json:"writeTimeout,omitempty"`
}

// Limits are a part of a Config. Zero means no limit.
type Limits struct {
	// Requests is how many requests other than watches one user may have under way. Default: 100.
	Requests int `json:"requests"`
	// Watches is how many watches one user may have, and TotalWatches all users together. Default: 1,000 and
	// 10,000.
	Watches      int `json:"watches"`
	TotalWatches int `json:"totalWatches"`
	// BytesPerSecond is what is written to one user in the long run, and BurstBytes what is written at once.
	// Who is over it waits with watches, and gets 429 for all else. Default: 64Mi and 1Gi.
	BytesPerSecond resource.Quantity `json:"bytesPerSecond"`
	BurstBytes     resource.Quantity `json:"burstBytes"`
	// Connections is how many connections are accepted at once; more wait. Default: 10,000.
	Connections int `json:"connections"`
	// ConnectionsPerAddress is how many of these one address of clients may have; more are closed. Where a
	// proxy or load balancer stands before the server, its address is that of all clients. Default: 1,000.
	ConnectionsPerAddress int `json:"connectionsPerAddress"`
}

// DefaultConfig returns what counts where a file says nothing else. It keeps no types.
func DefaultConfig() Config {
	return Config{
		APIVersion: ConfigAPIVersion, Kind: ConfigKind, Storage: dynamicinformer.StorageAdaptive,
		History: live.DefaultHistory,
		Watches: WatchConfig{
			Min: metav1.Duration{Duration: 5 * time.Minute}, Max: metav1.Duration{Duration: 10 * time.Minute},
			WriteTimeout: metav1.Duration{Duration: 30 * time.Second},
		},
		Limits: Limits{
			Requests: 100, Watches: 1000, TotalWatches: 10_000, Connections: 10_000,
			ConnectionsPerAddress: 1000,
			BytesPerSecond:        resource.MustParse("64Mi"), BurstBytes: resource.MustParse("1Gi"),
		},
	}
}

// LoadConfig reads a file over the defaults. It refuses fields that it does not know, in the case in which
// they are written. What the config lacks or contradicts is for Validate to say.
func LoadConfig(file string) (Config, error) {
	config := DefaultConfig()
	config.APIVersion, config.Kind = "", ""
	text, err := os.ReadFile(file)
	if err != nil {
		return config, err
	}
	if err := decode(text, &config); err != nil {
		return config, fmt.Errorf("%s: %w", file, err)
	}
	if config.APIVersion != ConfigAPIVersion || config.Kind != ConfigKind {
		return config, fmt.Errorf("%s: apiVersion %q and kind %q are not %s and %s", file, config.APIVersion,
			config.Kind, ConfigAPIVersion, ConfigKind)
	}
	return config, nil
}

// Validate returns everything that is wrong with a config.
func (c *Config) Validate() error {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if len(c.Types)+len(c.IndexConfigs) == 0 {
		wrong("types: there are none, and no indexConfigs: name what is to be kept")
	}
	for _, name := range c.Types {
		if _, err := discovery.ParseName(name); err != nil {
			wrong("types: %w", err)
		}
	}
	switch c.Storage {
	case dynamicinformer.StorageAdaptive, dynamicinformer.StorageCompressed, dynamicinformer.StoragePacked:
	default:
		wrong("storage: objects cannot be served of %q: write adaptive, compressed or packed", c.Storage)
	}
	if c.MemoryBudget.Sign() < 0 {
		wrong("memoryBudget: %s is negative", c.MemoryBudget.String())
	}
	if c.History < 1 {
		wrong("history: %d is less than 1", c.History)
	}
	if len(c.Page.Hosts) > 0 && !c.Page.Enabled {
		wrong("page.hosts: have no effect while page.enabled is false")
	}
	problems = append(problems, c.Watches.validate(), c.Limits.validate())
	return errors.Join(problems...)
}

// leastWatch is how short watches may be made: clients open each anew.
const leastWatch = time.Second

func (w WatchConfig) validate() error {
	switch {
	case w.Min.Duration < leastWatch:
		return fmt.Errorf("watches.min: %v is less than %v", w.Min.Duration, leastWatch)
	case w.Max.Duration < w.Min.Duration:
		return fmt.Errorf("watches.max: %v is less than watches.min, %v", w.Max.Duration, w.Min.Duration)
	case w.WriteTimeout.Duration <= 0:
		return fmt.Errorf("watches.writeTimeout: %v is not positive", w.WriteTimeout.Duration)
	}
	return nil
}

func (l Limits) validate() error {
	var problems []error
	for name, value := range map[string]int64{
		"requests": int64(l.Requests), "watches": int64(l.Watches), "totalWatches": int64(l.TotalWatches),
		"connections":           int64(l.Connections),
		"connectionsPerAddress": int64(l.ConnectionsPerAddress),
		"bytesPerSecond":        l.BytesPerSecond.Value(), "burstBytes": l.BurstBytes.Value(),
	} {
		if value < 0 {
			problems = append(problems, fmt.Errorf("limits.%s: %d is negative; 0 is no limit", name, value))
		}
	}
	if l.BytesPerSecond.Sign() > 0 && l.BurstBytes.Value() < leastBurst {
		problems = append(problems, fmt.Errorf("limits.burstBytes: %s is less than %d",
			l.BurstBytes.String(), leastBurst))
	}
	return errors.Join(problems...)
}

// leastBurst is how many bytes can be written at once whatever a config says: what readapi writes at once.
const leastBurst = 1 << 16
