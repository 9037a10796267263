package session

import (
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
)

// ConfigFlags are the flags that name configs.
type ConfigFlags struct {
	configs []string
	set     *pflag.FlagSet
}

// Add adds --config.
func (f *ConfigFlags) Add(set *pflag.FlagSet) {
	f.set = set
	set.StringSliceVar(&f.configs, "config", nil,
		"Index config; the names of its resources may be used as types. May be repeated.")
}

// Load reads the configs; it returns a Config without resources when none was named. Warnings go to warn.
func (f *ConfigFlags) Load(warn func(text string)) (*Config, error) {
	if len(f.configs) == 0 && f.set.Changed("config") {
		return nil, exit.Usagef("--config names no file: is it a variable that is not set?")
	}
	if len(f.configs) == 0 {
		return &Config{}, nil
	}
	files := unique(f.configs)
	loaded, err := indexers.Load(files...)
	if err != nil {
		return nil, err
	}
	for _, w := range loaded.Warnings {
		warn(w.Text())
	}
	return &Config{resources: loaded.Resources, Given: true, digest: digest(files)}, nil
}

// unique returns the files of a flag once each: the shell's completion reads flags twice.
func unique(files []string) []string {
	var once []string
	for _, file := range files {
		if !slices.Contains(once, file) {
			once = append(once, file)
		}
	}
	return once
}

// Config is what the configs of a command declare together.
type Config struct {
	// Given is false when no config was named.
	Given     bool
	resources []*indexers.Resource
	digest    string
}

// Digest tells configs apart by the text of their files; empty where that is not known.
func (c *Config) Digest() string { return c.digest }

// digest is that of files, in any order.
func digest(files []string) string {
	var sums []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "" // a folder, or standard input, which has been read
		}
		sums = append(sums, fmt.Sprintf("%x", sha256.Sum256(text)))
	}
	slices.Sort(sums)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(sums, "\n"))))
}

// TypeName gives the name that discovery knows for a name of a resource of the config, and any other name as
// it is.
func (c *Config) TypeName(name string) (string, error) {
	for _, r := range c.resources {
		if r.Name != name {
			continue
		}
		typeName := r.Match.Resource
		if typeName == "" {
			typeName = r.Match.Kind
		}
		if r.Match.Version != "" && r.Match.Group != "" {
			typeName += "." + r.Match.Version
		}
		if r.Match.Group != "" {
			typeName += "." + r.Match.Group
		}
		if _, err := discovery.ParseName(typeName); err != nil {
			return "", exit.Usagef("the resource %q of the config cannot be named here: %v", name, err)
		}
		return typeName, nil
	}
	return name, nil
}

// TypeNames splits arguments into names of types, as target.SplitTypes does, and gives the TypeName of each.
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

// Indexes are those that apply to a type. Where several resources of the config have indexes of one name that
// are not the same, each is called after its resource, too: certs/issuer.
func (c *Config) Indexes(r discovery.Resource) []*indexers.Index {
	return c.declared().IndexesOf(r.GVR, r.GVK.Kind)
}

// References are those that the objects of a type make by the config.
func (c *Config) References(r discovery.Resource) []*indexers.Reference {
	return c.declared().ReferencesOf(r.GVR, r.GVK.Kind)
}

func (c *Config) declared() *indexers.Config { return &indexers.Config{Resources: c.resources} }

// Refers reports whether the config declares any reference.
func (c *Config) Refers() bool {
	return slices.ContainsFunc(c.resources, func(r *indexers.Resource) bool { return len(r.References) > 0 })
}

// Names are the names of the resources of the config.
func (c *Config) Names() []string {
	names := make([]string, len(c.resources))
	for i, r := range c.resources {
		names[i] = r.Name
	}
	return names
}

// ForType names the indexes that apply to a type in any of its served versions, each after its resource.
func (c *Config) ForType(t discovery.Type) []string {
	names := []string{}
	for _, r := range c.resources {
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
