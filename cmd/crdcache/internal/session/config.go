package session

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	yaml "go.yaml.in/yaml/v3"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi/live"
)

type ConfigFlags struct {
	configs []string
	flags   *pflag.FlagSet
}

func (f *ConfigFlags) Add(set *pflag.FlagSet) {
	f.flags = set
	set.StringSliceVar(&f.configs, "config", nil, "")
}

// Load reads the configs and writes warnings to errOut. Without --config, the Config has no resources.
func (f *ConfigFlags) Load(errOut io.Writer) (*Config, error) {
	if len(f.configs) == 0 && f.flags.Changed("config") {
		return nil, Usagef("--config is empty: is a shell variable unset?")
	}
	if len(f.configs) == 0 {
		return &Config{Config: &indexers.Config{}}, nil
	}
	files := naming.AppendMissing(nil, f.configs...) // shell completion parses flags twice
	loaded, err := indexers.Load(files...)
	if err != nil {
		return nil, err
	}
	for _, w := range loaded.Warnings {
		fmt.Fprintf(errOut, "warning: %s\n", w.Text()) // with the source and a caret below it
	}
	return NewConfig(loaded, files...), nil
}

// Config is the merged content of the index configs of a command.
type Config struct {
	// IsSet is false without --config.
	IsSet bool
	// Files are the files of --config.
	Files []string

	*indexers.Config
}

// MarshalConfig returns an index config with resources. The order of the fields is the order in the output.
func MarshalConfig[R any](name string, resources []R) ([]byte, error) {
	var config struct {
		APIVersion string            `yaml:"apiVersion"`
		Kind       string            `yaml:"kind"`
		Metadata   map[string]string `yaml:"metadata"`
		Spec       map[string][]R    `yaml:"spec"`
	}
	config.APIVersion, config.Kind = indexers.APIVersion, indexers.Kind
	config.Metadata, config.Spec = map[string]string{"name": name}, map[string][]R{"resources": resources}
	text, err := yaml.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("write the config: %w", err)
	}
	return text, nil
}

func NewConfig(content *indexers.Config, files ...string) *Config {
	return &Config{IsSet: true, Files: files, Config: content}
}

// TypeName translates the name of a config resource into a type name for discovery. It returns other names
// unchanged.
func (c *Config) TypeName(name string) (string, error) {
	if r, ok := c.Resource(name); ok {
		return TypeName(r)
	}
	return name, nil
}

func TypeName(r *indexers.Resource) (string, error) {
	typeName := r.Match.TypeName()
	if _, err := discovery.ParseName(typeName); err != nil {
		return "", Usagef("cannot use the resource %q of the config as a type: %v", r.Name, err)
	}
	return typeName, nil
}

// TypeNames splits arguments as SplitTypes does and translates each name with TypeName.
func (c *Config) TypeNames(args []string) ([]string, error) {
	names, err := SplitTypes(args)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if names[i], err = c.TypeName(name); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// CheckMetrics returns an error if the config has no metrics, or if some cannot be served.
func (c *Config) CheckMetrics() error {
	err, hasMetrics := error(nil), false
	for _, r := range c.Resources {
		if len(r.Metrics) > 0 {
			err, hasMetrics = errors.Join(err, live.CheckResource(r)), true
		}
	}
	if !hasMetrics {
		return Usagef("there are no metrics to serve: declare metrics in the config of --config")
	}
	return err
}

// CheckNames returns an error if a resource has the singular or a short name of one of the types, or its kind
// in another case. Types are found by such names, but no index, reference or metric would apply to them.
func (c *Config) CheckNames(types []discovery.Resource) error {
	var findings []indexers.Diagnostic
	for _, declared := range c.Resources {
		m := declared.Match
		name := m.Resource + m.Kind
		for _, r := range types {
			if m.Group != r.GVR.Group || m.Matches(m.Group, r.GVR.Resource, r.GVK.Kind) ||
				name != r.Singular && name != r.GVR.Resource && !strings.EqualFold(name, r.GVK.Kind) &&
					!slices.Contains(r.ShortNames, name) {
				continue
			}
			findings = append(findings, declared.Finding("E304", fmt.Sprintf("%q is another name of %s", name,
				r.GVR.GroupResource()), fmt.Sprintf("write resource: %s, or kind: %s", r.GVR.Resource, r.GVK.Kind)))
		}
	}
	if len(findings) == 0 {
		return nil
	}
	return &indexers.ConfigError{Diagnostics: findings}
}

// resourcesOf returns the part of the config that names the type. A pattern may have fields of other types.
func (c *Config) resourcesOf(r discovery.Resource) *indexers.Config {
	return &indexers.Config{Resources: slices.DeleteFunc(slices.Clone(c.Resources),
		func(declared *indexers.Resource) bool {
			return declared.Match.Pattern() || !declared.Match.MatchesVersion(r.GVR, r.GVK.Kind)
		})}
}

func (c *Config) HasReferences() bool {
	return slices.ContainsFunc(c.Resources, func(r *indexers.Resource) bool { return len(r.References) > 0 })
}

func (c *Config) Names() []string {
	return naming.Texts(c.Resources, func(r *indexers.Resource) string { return r.Name })
}

// IndexNames returns RESOURCE/INDEX for each index of any served version of a type.
func (c *Config) IndexNames(t discovery.Type) []string {
	names := []string{}
	for _, r := range c.Resources {
		m := r.Match
		if !m.Matches(t.GroupResource.Group, t.GroupResource.Resource, t.Kind) ||
			m.Version != "" && !slices.Contains(t.ServedVersions(), m.Version) {
			continue
		}
		for _, index := range r.Indexes {
			names = append(names, fmt.Sprintf("%s/%s", r.Name, index.Name))
		}
	}
	return names
}
