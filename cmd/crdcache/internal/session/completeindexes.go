package session

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/crdcache/crdcache/indexers"
)

// ResourceNames are the names of the resources of the configs; none when a config cannot be read.
func (f *ConfigFlags) ResourceNames() []string {
	config, err := f.Load(func(string) {})
	if err != nil {
		return nil
	}
	return config.Names()
}

// Complete makes the shell complete the values of these flags with names of indexes, of the type that is the
// argument if that is a resource of a config; suffix is what comes after a name.
func (f *ConfigFlags) Complete(cmd *cobra.Command, suffix string, flags ...string) {
	f.complete(cmd, suffix, func(*indexers.Index) bool { return true }, flags)
}

// CompleteSorted is Complete for flags that take sorted indexes.
func (f *ConfigFlags) CompleteSorted(cmd *cobra.Command, flags ...string) {
	f.complete(cmd, "", func(index *indexers.Index) bool { return index.Sorted }, flags)
}

func (f *ConfigFlags) complete(cmd *cobra.Command, suffix string, wanted func(*indexers.Index) bool, flags []string) {
	for _, flag := range flags {
		_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			directive := cobra.ShellCompDirectiveNoFileComp
			if suffix != "" {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
			return f.indexNames(args, begun, suffix, wanted), directive
		})
	}
}

func (f *ConfigFlags) indexNames(args []string, begun, suffix string, wanted func(*indexers.Index) bool) []string {
	config, err := f.Load(func(string) {})
	if err != nil {
		return nil
	}
	named := slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(config.Names(), arg) })
	var names []string
	for _, r := range config.resources {
		if named && !slices.Contains(args, r.Name) {
			continue
		}
		for _, index := range r.Indexes {
			if word := index.Name + suffix; wanted(index) && strings.HasPrefix(word, begun) && !slices.Contains(names, word) {
				names = append(names, word)
			}
		}
	}
	return names
}
