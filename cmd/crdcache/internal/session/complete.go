package session

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
)

// completionTimeout bounds how long a person waits for a list of words.
const completionTimeout = 3 * time.Second

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Complete makes the shell complete the values of the flags.
func (f *ServerFlags) Complete(cmd *cobra.Command) {
	completeFlag(cmd, "namespace", func(ctx context.Context, _ string) []string { return f.namespaceNames(ctx) })
	for flag, names := range map[string]func(clientcmdapi.Config) iter.Seq[string]{
		"context": func(c clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.Contexts) },
		"cluster": func(c clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.Clusters) },
		"user":    func(c clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.AuthInfos) },
	} {
		completeFlag(cmd, flag, func(context.Context, string) []string { return f.configured(names) })
	}
}

// completeFlag ignores flags that a command does not have.
func completeFlag(cmd *cobra.Command, flag string, words func(ctx context.Context, begun string) []string) {
	if cmd.Flags().Lookup(flag) == nil {
		return
	}
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		return beginWith(words(ctx, begun), begun), cobra.ShellCompDirectiveNoFileComp
	})
}

// beginWith keeps the words that begin with what was typed.
func beginWith(words []string, begun string) []string {
	return slices.DeleteFunc(words, func(word string) bool { return !strings.HasPrefix(word, begun) })
}

// CompleteTypes completes arguments that are types, several if many is set, also with commas between them; first are
// names that come before those of the server.
func (f *ServerFlags) CompleteTypes(many bool, first func() []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		words := f.typeNames(ctx)
		if first != nil {
			words = append(first(), words...)
		}
		if many {
			return beginListWith(words, begun), cobra.ShellCompDirectiveNoFileComp
		}
		return beginWith(words, begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteDefinedTypes is CompleteTypes for verbs that work on types of CRDs.
func (f *ServerFlags) CompleteDefinedTypes() cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		return beginListWith(f.definedTypeNames(ctx), begun), cobra.ShellCompDirectiveNoFileComp
	}
}

// definedTypeNames are those of typeNames that CRDs define. Who may not read CRDs gets all that may be such.
func (f *ServerFlags) definedTypeNames(ctx context.Context) []string {
	names := slices.DeleteFunc(f.typeNames(ctx), func(name string) bool { return strings.Count(name, ".") < 2 })
	on := f.quietTarget(ctx)
	if on == nil {
		return nil
	}
	defined, err := on.objectNames(ctx, crd.GVR, "")
	if err != nil {
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(defined, name) })
}

// beginListWith keeps the words that begin with what was typed after the last comma and are not in the list before that,
// and gives each with that list.
func beginListWith(words []string, begun string) []string {
	comma := strings.LastIndexByte(begun, ',') + 1
	there, begun := begun[:comma], begun[comma:]
	taken := strings.Split(there, ",")
	words = slices.DeleteFunc(beginWith(words, begun), func(word string) bool { return slices.Contains(taken, word) })
	for i, word := range words {
		words[i] = there + word
	}
	return words
}

// quietTarget is the target without a word to stderr; nil when there is none.
func (f *ServerFlags) quietTarget(ctx context.Context) *Target {
	on, err := f.Target(ctx, genericiooptions.NewTestIOStreamsDiscard())
	if err != nil {
		return nil
	}
	return on
}

// typeNames are the types of the server: with their group where there is one.
func (f *ServerFlags) typeNames(ctx context.Context) []string {
	on := f.quietTarget(ctx)
	if on == nil {
		return nil
	}
	client, err := discovery.NewClient(on.Config, discovery.Options{Timeout: completionTimeout})
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
	names, _ := on.objectNames(ctx, namespaces, "")
	return names
}

// configured returns what the kubeconfig has names for.
func (f *ServerFlags) configured(names func(clientcmdapi.Config) iter.Seq[string]) []string {
	config, err := f.config.loader().RawConfig()
	if err != nil {
		return nil
	}
	return slices.Sorted(names(config))
}
