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
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/internal/naming"
)

const completionTimeout = 3 * time.Second

func (f *ServerFlags) complete(cmd *cobra.Command) {
	setCompletion(cmd, "namespace", func(ctx context.Context, _ []string, _ string) []string {
		target := f.quietTarget(ctx)
		if target == nil {
			return nil
		}
		namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
		names, _ := target.objectNames(ctx, discovery.Resource{GVR: namespaces}, "")
		return names
	})
	for flag, names := range map[string]func(clientcmdapi.Config) iter.Seq[string]{
		"context": contextNames,
		"cluster": func(c clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.Clusters) },
		"user":    func(c clientcmdapi.Config) iter.Seq[string] { return maps.Keys(c.AuthInfos) },
	} {
		setCompletion(cmd, flag, func(context.Context, []string, string) []string {
			return f.kubeconfigNames(names)
		})
	}
}

func contextNames(config clientcmdapi.Config) iter.Seq[string] { return maps.Keys(config.Contexts) }

// candidates returns proposals for the argument after args. Only those that begin with toComplete count.
type candidates func(ctx context.Context, args []string, toComplete string) []string

// newCompletion returns a completion function that never proposes files, and no space after "=". It bounds
// candidates by completionTimeout.
func newCompletion(c candidates) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		proposals := slices.DeleteFunc(c(ctx, args, toComplete),
			func(proposal string) bool { return !strings.HasPrefix(proposal, toComplete) })
		needsNoMore := func(proposal string) bool { return !strings.HasSuffix(proposal, "=") }
		if len(proposals) > 0 && !slices.ContainsFunc(proposals, needsNoMore) {
			return proposals, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return proposals, cobra.ShellCompDirectiveNoFileComp
	}
}

// completedValue is the value of a flag with its completion. cobra keeps registered completions, and with
// them the flags of the command, until the process ends. crdcache mcp runs many commands.
type completedValue struct {
	pflag.Value
	complete cobra.CompletionFunc
}

func setCompletion(cmd *cobra.Command, name string, c candidates) {
	SeparateLines(cmd.Flags()) // first, because RegisterCompletions finds outer values only
	flag := cmd.Flags().Lookup(name)
	flag.Value = completedValue{flag.Value, newCompletion(c)}
	flag.DefValue = strings.TrimSuffix(flag.DefValue, "[]") // which pflag prints for its own types only
}

// RegisterCompletions registers the completions of the flags of a command and its subcommands.
func RegisterCompletions(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if value, ok := flag.Value.(completedValue); ok {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, value.complete)
		}
	})
	for _, sub := range cmd.Commands() {
		RegisterCompletions(sub)
	}
}

// CompleteTypes completes arguments that are types. With allowsMany it completes several arguments and
// comma-separated lists. extraNames are proposed before the server's types.
func (f *ServerFlags) CompleteTypes(allowsMany bool, extraNames func() []string) cobra.CompletionFunc {
	return newCompletion(func(ctx context.Context, args []string, toComplete string) []string {
		if len(args) > 0 && !allowsMany {
			return nil
		}
		candidates := f.typeNames(ctx)
		if extraNames != nil {
			candidates = append(extraNames(), candidates...)
		}
		if allowsMany {
			return completeList(candidates, toComplete)
		}
		return candidates
	})
}

// CompleteFileAndTypes completes fileCount files and then types.
func (f *ServerFlags) CompleteFileAndTypes(fileCount int) cobra.CompletionFunc {
	types := f.CompleteTypes(true, nil)
	return func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) < fileCount {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return types(cmd, args[fileCount:], toComplete)
	}
}

// completeList completes the last item of a comma-separated list. It omits the items that the list already
// has.
func completeList(candidates []string, prefix string) []string {
	listed := prefix[:strings.LastIndexByte(prefix, ',')+1]
	listedNames := strings.Split(listed, ",")
	candidates = slices.DeleteFunc(candidates,
		func(candidate string) bool { return slices.Contains(listedNames, candidate) })
	return naming.Texts(candidates, func(candidate string) string { return listed + candidate })
}

// quietTarget returns the first target with discarded output, or nil after an error.
func (f *ServerFlags) quietTarget(ctx context.Context) *Target {
	targets, err := f.Targets(ctx, genericiooptions.NewTestIOStreamsDiscard())
	if err != nil || targets[0].contextErr != nil {
		return nil
	}
	return targets[0]
}

// typeNames returns the server's types as RESOURCE.GROUP.
func (f *ServerFlags) typeNames(ctx context.Context) []string {
	target := f.quietTarget(ctx)
	if target == nil {
		return nil
	}
	catalog, err := target.Catalog(ctx)
	if err != nil {
		return nil
	}
	var names []string
	for _, r := range catalog.Resources() {
		if r.Preferred && r.HasVerbs("list") {
			names = append(names, r.GVR.GroupResource().String())
		}
	}
	return names
}

func (f *ServerFlags) kubeconfigNames(names func(clientcmdapi.Config) iter.Seq[string]) []string {
	config, err := f.kubeconfig.loader().RawConfig()
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

// CompleteIndexes completes the value of a flag with the names of the selected indexes, each followed by
// suffix. Nil selects all. If the argument is a resource of a config, only its indexes are proposed.
func (f *ConfigFlags) CompleteIndexes(cmd *cobra.Command, flag, suffix string,
	isSelected func(*indexers.Index) bool) {
	setCompletion(cmd, flag, func(_ context.Context, args []string, _ string) []string {
		config, err := f.Load(io.Discard)
		if err != nil {
			return nil
		}
		hasResourceArg := slices.ContainsFunc(args, func(arg string) bool {
			return slices.Contains(config.Names(), arg)
		})
		var names []string
		for _, r := range config.Resources {
			if hasResourceArg && !slices.Contains(args, r.Name) {
				continue
			}
			for _, index := range r.Indexes {
				if isSelected == nil || isSelected(index) {
					names = naming.AppendMissing(names, index.Name+suffix)
				}
			}
		}
		return names
	})
}

// CompleteNames makes the command complete TYPE NAME and TYPE/NAME. It completes types if no object matches.
func (f *ReadFlags) CompleteNames(cmd *cobra.Command, allowsMany bool) {
	types := cmd.ValidArgsFunction
	objects := newCompletion(func(ctx context.Context, args []string, toComplete string) []string {
		typeName, _, hasSlash := strings.Cut(toComplete, "/")
		prefix := typeName + "/"
		if !hasSlash || len(args) > 0 && !allowsMany {
			if len(args) == 0 || len(args) > 1 && !allowsMany {
				return nil
			}
			typeName, prefix = args[0], ""
		}
		names := naming.Texts(f.objectNames(ctx, typeName), func(name string) string { return prefix + name })
		return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) })
	})
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string,
		toComplete string) ([]string, cobra.ShellCompDirective) {
		if names, directive := objects(cmd, args, toComplete); len(names) > 0 {
			return names, directive
		}
		return types(cmd, args, toComplete)
	}
}

// objectNames returns the names of the objects of a type, or nil if the name matches several types.
func (f *ReadFlags) objectNames(ctx context.Context, typeName string) []string {
	config, err := f.Load(io.Discard)
	target := f.quietTarget(ctx)
	if err != nil || target == nil {
		return nil
	}
	typeNames, _ := config.TypeNames([]string{typeName})
	types, _ := target.Resolve(ctx, typeNames)
	if len(types) != 1 {
		return nil
	}
	names, _ := target.objectNames(ctx, types[0], target.Namespace) // an incomplete list is better than none
	return names
}

const acceptMetadata = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

// objectNames lists the distinct names of the objects of a type. An empty namespace means all. With an error
// it returns the names read before the error.
func (t *Target) objectNames(ctx context.Context, resource discovery.Resource,
	namespace string) ([]string, error) {
	client, err := t.PlainClient()
	if err != nil {
		return nil, err
	}
	var names []string
	for continueToken := ""; ; {
		body, err := print.ListRequest(client, resource, namespace).Param("limit", strconv.Itoa(chunkSize)).
			Param("continue", continueToken).SetHeader("Accept", acceptMetadata).Do(ctx).Raw()
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
		if continueToken = list.Continue; continueToken == "" {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
	}
}
