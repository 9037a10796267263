package server

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi/live"
)

// The apiVersion and kind of a config file.
const (
	ConfigAPIVersion = indexers.APIVersion
	ConfigKind       = "ServerConfig"
)

// Config is the content of a config file. DefaultConfig returns the defaults.
type Config struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Types are type names in kubectl's syntax, and patterns such as "*.example.com". A pattern also
	// selects types that are installed later, if they can be listed and watched. The types of
	// IndexConfigs are cached, too.
	Types []string `json:"types,omitempty"`
	// IndexConfigs are the paths of index configs.
	IndexConfigs []string `json:"indexConfigs,omitempty"`
	// Secrets permits caching Secrets if Types select them. Default: false.
	Secrets bool `json:"secrets,omitempty"`
	// Storage is the storage mode of objects in memory: Adaptive, Compressed or Packed. Default: Adaptive.
	Storage dynamicinformer.StorageMode `json:"storage,omitempty"`
	// MemoryBudget is the target size of the caches. Adaptive storage compresses more objects to meet it.
	// Default: no budget.
	MemoryBudget resource.Quantity `json:"memoryBudget,omitempty"`
	// PersistenceDirectory stores the cached objects for the next start, except Secrets. Default: no
	// persistence.
	PersistenceDirectory string `json:"persistenceDirectory,omitempty"`
	// History is the number of changes of each type that watches can replay. Default: live.DefaultHistory.
	History int `json:"history,omitempty"`
	// Page configures the page for browsers.
	Page PageConfig `json:"page,omitempty"`
	// TokenAudiences are the accepted audiences of bearer tokens. A token needs one of them. Default: the
	// audiences of the API server.
	TokenAudiences []string `json:"tokenAudiences,omitempty"`
	// Watches limit the duration of watches.
	Watches WatchConfig `json:"watches,omitempty"`
	// Limits are limits per user and in total.
	Limits Limits `json:"limits,omitempty"`
}

// PageConfig configures the page under /page. Users need access to that path, and see the objects that they
// may list.
type PageConfig struct {
	// Enabled serves the page. Default: false.
	Enabled bool `json:"enabled,omitempty"`
	// Hosts are the accepted Host headers, as host:port. Default: loopback addresses.
	Hosts []string `json:"hosts,omitempty"`
}

// WatchConfig configures watches. A watch ends after a random time between Min and Max, so that revoked
// access takes effect. A client can request an earlier end.
type WatchConfig struct {
	// Min and Max default to 5 and 10 minutes.
	Min metav1.Duration `json:"min,omitempty"`
	Max metav1.Duration `json:"max,omitempty"`
	// WriteTimeout bounds a write to a client. Then the connection is closed. Default: 30 seconds.
	WriteTimeout metav1.Duration `json:"writeTimeout,omitempty"`
}

// Limits are limits of requests, bytes and connections. Zero means no limit.
type Limits struct {
	// Requests is the number of concurrent requests of a user, without watches. Default: 100.
	Requests int `json:"requests"`
	// Watches is the number of watches of a user, and TotalWatches the number of watches of all users.
	// Default:
	// 1,000 and 10,000.
	Watches      int `json:"watches"`
	TotalWatches int `json:"totalWatches"`
	// BytesPerSecond and BurstBytes limit the bytes written to a user. Above the limit, watches wait and
	// other requests get a 429. Default: 64Mi and 1Gi.
	BytesPerSecond resource.Quantity `json:"bytesPerSecond"`
	BurstBytes     resource.Quantity `json:"burstBytes"`
	// IndexBytes is the memory of one index, and TypeIndexBytes the memory of all indexes of a type. A config
	// with a larger index is rejected. Default: 256Mi and 1Gi.
	IndexBytes     resource.Quantity `json:"indexBytes"`
	TypeIndexBytes resource.Quantity `json:"typeIndexBytes"`
	// Connections is the number of open connections. Further connections wait to be accepted. Default:
	// 10,000.
	Connections int `json:"connections"`
	// ConnectionsPerAddress is the number of open connections of a client address. Further connections
	// are closed. All clients behind a proxy or load balancer have its address. Default: 1,000.
	ConnectionsPerAddress int `json:"connectionsPerAddress"`
}

// DefaultConfig returns the defaults. They cache no types.
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
			IndexBytes: resource.MustParse("256Mi"), TypeIndexBytes: resource.MustParse("1Gi"),
		},
	}
}

// LoadConfig returns the config in a file. Omitted fields have the defaults. Unknown fields are errors, and
// names are case-sensitive. It does not call Validate.
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

// Validate returns all errors of a config.
func (c *Config) Validate() error {
	var errs []error
	addProblem := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf(format, args...))
	}
	if len(c.Types)+len(c.IndexConfigs) == 0 {
		addProblem("types: no types and no indexConfigs: name the types to cache")
	}
	for _, name := range c.Types {
		if _, err := discovery.ParseName(name); err != nil {
			addProblem("types: %w", err)
		}
	}
	if err := live.CheckStorage(c.Storage.String()); err != nil {
		addProblem("storage: %w", err)
	}
	if c.MemoryBudget.Sign() < 0 {
		addProblem("memoryBudget: %s is negative", c.MemoryBudget.String())
	}
	if c.History < 1 {
		addProblem("history: %d is less than 1", c.History)
	}
	if len(c.Page.Hosts) > 0 && !c.Page.Enabled {
		addProblem("page.hosts: have no effect while page.enabled is false")
	}
	errs = append(errs, c.Watches.validate(), c.Limits.validate())
	return errors.Join(errs...)
}

// minWatchDuration is the minimum of watches.min. Clients reopen each watch that ends.
const minWatchDuration = time.Second

func (w WatchConfig) validate() error {
	switch {
	case w.Min.Duration < minWatchDuration:
		return fmt.Errorf("watches.min: %v is less than %v", w.Min.Duration, minWatchDuration)
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
		"indexBytes": l.IndexBytes.Value(), "typeIndexBytes": l.TypeIndexBytes.Value(),
	} {
		if value < 0 {
			problems = append(problems, fmt.Errorf("limits.%s: %d is negative; 0 is no limit", name, value))
		}
	}
	if l.BytesPerSecond.Sign() > 0 && l.BurstBytes.Value() < minBurstBytes {
		problems = append(problems, fmt.Errorf("limits.burstBytes: %s is less than %d",
			l.BurstBytes.String(), minBurstBytes))
	}
	return errors.Join(problems...)
}

// minBurstBytes is the minimum of BurstBytes, because readapi writes up to this number of bytes at once.
const minBurstBytes = 1 << 16

// fieldsWithoutDot are field selectors of built-in types without a dot.
var fieldsWithoutDot = []string{"reason", "reportingComponent", "source", "type"}

func validateIndexNames(r *indexers.Resource) error {
	return errors.Join(naming.Map(r.Indexes,
		func(index *indexers.Index) error { return validateIndexName(index.Name) })...)
}

// validateIndexName rejects names that look like fields. Clients use indexes as field selectors, and
// authorizers decide by field selectors. For example, a kubelet may read Pods with its spec.nodeName. An
// index of that name over another field would give the kubelet access to other Pods.
func validateIndexName(name string) error {
	if strings.Contains(name, ".") || slices.Contains(fieldsWithoutDot, name) {
		return fmt.Errorf("index %q has the name of a field selector, which authorizers might permit: use another name without dots", name)
	}
	return nil
}
