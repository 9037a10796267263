package print

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
)

// OneOf checks a flag that takes one of a few words.
func OneOf(what, given string, words []string) error {
	for _, word := range words {
		if word == given {
			return nil
		}
	}
	return exit.Usagef("there is no %s %q; use one of %s", what, given, strings.Join(words, ", "))
}

// CompleteWords makes the shell complete a flag that takes one of a few words; of those that end with "=..." an
// argument is to follow.
func CompleteWords(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		var all []string
		directive := cobra.ShellCompDirectiveNoFileComp
		for _, word := range words {
			word = strings.TrimSuffix(word, "...")
			if strings.HasPrefix(word, begun) {
				all = append(all, word)
			}
		}
		if len(all) == 1 && strings.HasSuffix(all[0], "=") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return all, directive
	})
}
