package session

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery"
)

// acceptNames asks for no more of objects than their metadata.
const acceptNames = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"

// completeNames completes TYPE NAME and TYPE/NAME, several if many is set, and types where no object has such a name.
func (f *ReadFlags) completeNames(many bool, types cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		named, prefix := "", ""
		if of, _, slash := strings.Cut(begun, "/"); slash && (many || len(args) == 0) {
			named, prefix = of, of+"/"
		} else if len(args) == 1 || many && len(args) > 1 {
			named = args[0]
		}
		if named == "" || strings.ContainsAny(named, ",/") {
			return types(cmd, args, begun)
		}
		var words []string
		for _, name := range f.objectNames(ctx, named) {
			if word := prefix + name; strings.HasPrefix(word, begun) && !slices.Contains(args, word) {
				words = append(words, word)
			}
		}
		if len(words) == 0 {
			return types(cmd, args, begun)
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// objectNames returns the names of the objects of a type; none where the name stands for several types.
func (f *ReadFlags) objectNames(ctx context.Context, typeName string) []string {
	on := f.target.quietTarget(ctx)
	config, err := f.configs.Load(func(string) {})
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
	namespace := on.Namespace
	if types[0].Scope != discovery.Namespaced {
		namespace = ""
	}
	names, _ := on.objectNames(ctx, types[0].GVR, namespace) // those that came in time are better than none
	return names
}

// objectNames reads the names of the objects of a type, once each. An empty namespace stands for all. An error comes
// together with the names that were read before.
func (t *Target) objectNames(ctx context.Context, gvr schema.GroupVersionResource, namespace string) ([]string, error) {
	client, err := t.PlainClient()
	if err != nil {
		return nil, err
	}
	at := path.Join("/apis", gvr.Group, gvr.Version)
	if gvr.Group == "" {
		at = path.Join("/api", gvr.Version)
	}
	if namespace != "" {
		at = path.Join(at, "namespaces", namespace)
	}
	var names []string
	for next := ""; ; {
		body, err := client.Get().AbsPath(at, gvr.Resource).Param("limit", strconv.Itoa(chunkSize)).Param("continue", next).
			SetHeader("Accept", acceptNames).Do(ctx).Raw()
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
