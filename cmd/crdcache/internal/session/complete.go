package session

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
)

// completionTimeout bounds the time of one completion.
const completionTimeout = 3 * time.Second

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// complete registers shell completion for the values of the flags.
func (f *ServerFlags) complete(cmd *cobra.Command) {
	complete := func(flag string, words func(context.Context) []string) {
		_ = cmd.RegisterFlagCompletionFunc(flag,
			completion(func(ctx context.Context, _ []string, begun string) []string {
				return withPrefix(words(ctx), begun)
			}))
	}
	complete("namespace", f.namespaceNames)
	for flag, names := range map[string]func(clientcmdapi.Config) iter.Seq[string]{
		"context": contextNames,
		"cluster": func(c clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.Clusters) },
		"user":    func(c clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.AuthInfos) },
	} {
		complete(flag, func(context.Context) []string { return f.kubeconfigNames(names) })
	}
}

func contextNames(config clientcmdapi.Config) iter.Seq[string] { return maps.Keys(config.Contexts) }

// completion returns a completion without file names, whose requests end with completionTimeout.
func completion(words func(ctx context.Context, args []string, begun string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		return words(ctx, args, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

func withPrefix(words []string, prefix string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return !strings.HasPrefix(word, prefix) })
}

// CompleteTypes completes arguments that are types. With many it completes several arguments and
// comma-separated lists. The words of first come before the server's types.
func (f *ServerFlags) CompleteTypes(allowsMany bool, first func() []string) cobra.CompletionFunc {
	return completion(func(ctx context.Context, args []string, begun string) []string {
		if len(args) > 0 && !allowsMany {
			return nil
		}
		words := f.typeNames(ctx)
		if first != nil {
			words = append(first(), words...)
		}
		if allowsMany {
			return completeList(words, begun)
		}
		return withPrefix(words, begun)
	})
}

// CompleteFileAndTypes completes a number of files before the types.
func (f *ServerFlags) CompleteFileAndTypes(files int) cobra.CompletionFunc {
	types := f.CompleteTypes(true, nil)
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) < files {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return types(cmd, args[files:], begun)
	}
}

// completeList completes the last word of a comma-separated list, without words that the list already has.
func completeList(words []string, prefix string) []string {
	comma := strings.LastIndexByte(prefix, ',') + 1
	earlier, prefix := prefix[:comma], prefix[comma:]
	chosen := strings.Split(earlier, ",")
	words = slices.DeleteFunc(withPrefix(words, prefix),
		func(word string) bool { return slices.Contains(chosen, word) })
	for i, word := range words {
		words[i] = earlier + word
	}
	return words
}

// quietTarget returns the first target without warnings, or nil if it is not available.
func (f *ServerFlags) quietTarget(ctx context.Context) *Target {
	targets, err := f.Targets(ctx, genericiooptions.NewTestIOStreamsDiscard())
	if err != nil || targets[0].invalid != nil {
		return nil
	}
	return targets[0]
}

// typeNames returns the server's types as RESOURCE.GROUP.
func (f *ServerFlags) typeNames(ctx context.Context) []string {
	on := f.quietTarget(ctx)
	if on == nil {
		return nil
	}
	client, err := discovery.NewClient(on.Rest, discovery.Options{Timeout: completionTimeout})
	if err != nil {
		return nil
	}
	catalog, err := client.Catalog(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, r := range catalog.Resources() {
		if r.Preferred && r.Watchable() {
			names = append(names, r.GVR.GroupResource().String())
		}
	}
	return names
}

func (f *ServerFlags) namespaceNames(ctx context.Context) []string {
	on := f.quietTarget(ctx)
	if on == nil {
		return nil
	}
	names, _ := on.objectNames(ctx, discovery.Resource{GVR: namespaces}, "")
	return names
}

// kubeconfigNames returns sorted names from the kubeconfig.
func (f *ServerFlags) kubeconfigNames(names func(clientcmdapi.Config) iter.Seq[string]) []string {
	config, err := f.config.loader().RawConfig()
	if err != nil {
		return nil
	}
	return slices.Sorted(names(config))
}

// ResourceNames returns the names of the resources of the configs, or nil if a config cannot be read.
func (f *ConfigFlags) ResourceNames() []string {
	config, err := f.Load(io.Discard)
	if err != nil {
		return nil
	}
	return config.Names()
}

// CompleteIndexes completes the values of the flags with the names of the selected indexes, each followed by
// suffix. If the argument is a resource of a config, it completes only the indexes of that resource.
func (f *ConfigFlags) CompleteIndexes(cmd *cobra.Command, suffix string, selects func(*indexers.Index) bool,
	flags ...string) {
	for _, flag := range flags {
		_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, args []string,
			begun string) ([]string, cobra.ShellCompDirective) {
			directive := cobra.ShellCompDirectiveNoFileComp
			if suffix != "" {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
			return f.indexNames(args, begun, suffix, selects), directive
		})
	}
}

// AnyIndex selects all indexes.
func AnyIndex(*indexers.Index) bool { return true }

func (f *ConfigFlags) indexNames(args []string, prefix, suffix string,
	selects func(*indexers.Index) bool) []string {
	config, err := f.Load(io.Discard)
	if err != nil {
		return nil
	}
	named := slices.ContainsFunc(args, func(arg string) bool { return slices.Contains(config.Names(), arg) })
	var names []string
	for _, r := range config.Resources {
		if named && !slices.Contains(args, r.Name) {
			continue
		}
		for _, index := range r.Indexes {
			if word := index.Name + suffix; selects(index) && strings.HasPrefix(word, prefix) &&
				!slices.Contains(names, word) {
				names = append(names, word)
			}
		}
	}
	return names
}

// acceptNames requests only the metadata of objects.
const acceptNames = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

// CompleteNames makes the command complete TYPE NAME and TYPE/NAME. It completes types if no object matches.
func (f *ReadFlags) CompleteNames(cmd *cobra.Command, allowsMany bool) {
	types := cmd.ValidArgsFunction
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string,
		begun string) ([]string, cobra.ShellCompDirective) {
		named, prefix := "", ""
		if typeName, _, slash := strings.Cut(begun, "/"); slash && (allowsMany || len(args) == 0) {
			named, prefix = typeName, typeName+"/"
		} else if len(args) == 1 || allowsMany && len(args) > 1 {
			named = args[0]
		}
		if named == "" || strings.ContainsAny(named, ",/") {
			return types(cmd, args, begun)
		}
		objects := completion(func(ctx context.Context, args []string, begun string) (words []string) {
			for _, name := range f.objectNames(ctx, named) {
				if word := prefix + name; strings.HasPrefix(word, begun) && !slices.Contains(args, word) {
					words = append(words, word)
				}
			}
			return words
		})
		words, directive := objects(cmd, args, begun)
		if len(words) == 0 {
			return types(cmd, args, begun)
		}
		return words, directive
	}
}

// objectNames returns the names of the objects of a type, or nil if the name matches several types.
func (f *ReadFlags) objectNames(ctx context.Context, typeName string) []string {
	on := f.quietTarget(ctx)
	config, err := f.Load(io.Discard)
	if on == nil || err != nil {
		return nil
	}
	if typeName, err = config.TypeName(typeName); err != nil {
		return nil
	}
	types, _ := on.Resolve(ctx, []string{typeName})
	if len(types) != 1 {
		return nil
	}
	names, _ := on.objectNames(ctx, types[0], on.Namespace) // an incomplete list is better than none
	return names
}

// objectNames lists the distinct names of the objects of a type. An empty namespace means all. With an error
// it returns the names read before the error.
func (t *Target) objectNames(ctx context.Context, resource discovery.Resource,
	namespace string) ([]string, error) {
	client, err := t.PlainClient()
	if err != nil {
		return nil, err
	}
	var names []string
	for next := ""; ; {
		body, err := print.ListRequest(client, resource, namespace).Param("limit", strconv.Itoa(chunkSize)).
			Param("continue", next).SetHeader("Accept", acceptNames).Do(ctx).Raw()
		if err != nil {
			return names, err
		}
		var list metav1.PartialObjectMetadataList
		if err := json.Unmarshal(body, &list); err != nil {
			return names, err
		}
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
		if next = list.Continue; next == "" {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
	}
}
