package cli

import (
	"cmp"
	_ "embed" // of the texts
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
)

const helpWidth = 80

//go:embed help.txt
var helpTexts string

// addHelp adds the texts of help.txt to the commands below root, and to their flags without a usage.
func addHelp(root *cobra.Command) {
	texts, flagTexts, _ := strings.Cut(helpTexts, "\n== flags\n")
	for section := range strings.SplitSeq(texts, "\n== ") {
		path, parts, _ := strings.Cut(section, "\n")
		cmd, _, err := root.Find(strings.Fields(strings.TrimPrefix(path, "crdcache")))
		if err != nil || strings.HasPrefix(path, "#") {
			continue
		}
		parts, cmd.Example, _ = strings.Cut(strings.TrimSuffix(parts, "\n"), "\n-- examples\n")
		long, details, hasDetails := strings.Cut(parts, "\n-- details\n")
		if cmd.Long = long; hasDetails {
			cmd.Annotations = map[string]string{session.DetailsAnnotation: details}
		}
	}
	usages := map[string]string{}
	for line := range strings.Lines(flagTexts) {
		name, usage, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		usages[name] = usage
	}
	addUsages(root, usages)
}

func addUsages(cmd *cobra.Command, usages map[string]string) {
	session.SeparateLines(cmd.Flags())
	cmd.Flags().VisitAll(func(f *pflag.Flag) { f.Usage = cmp.Or(f.Usage, usages[f.Name]) })
	for _, sub := range cmd.Commands() {
		addUsages(sub, usages)
	}
}

// printUsage prints the part of --help after the description. To fit one screen it omits the shared flags,
// and all but the first sentence of the description of a flag.
func printUsage(cmd *cobra.Command) error {
	var b strings.Builder
	line := cmd.UseLine()
	if !cmd.HasParent() {
		line = cmd.CommandPath() + " COMMAND [flags]"
	}
	fmt.Fprintf(&b, "Usage:\n  %s\n", line)
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAlias: %s\n", strings.Join(cmd.Aliases, ", "))
	}
	if cmd.HasExample() {
		fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\nCommands:\n")
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			fmt.Fprintf(&b, "  %-*s %s\n", sub.NamePadding(), sub.Name(), sub.Short)
		}
	}
	ownFlags, hasShared := pflag.NewFlagSet("", pflag.ContinueOnError), false
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if session.IsShared(f) {
			hasShared = true
		} else if f.Name != "help" {
			brief := *f
			brief.Usage, _, _ = strings.Cut(strings.TrimSuffix(f.Usage, "."), ". ")
			ownFlags.AddFlag(&brief)
		}
	})
	if ownFlags.HasFlags() {
		fmt.Fprintf(&b, "\nFlags:\n%s", ownFlags.FlagUsagesWrapped(helpWidth))
	}
	if name := cmd.Root().CommandPath(); hasShared || !cmd.HasParent() {
		fmt.Fprintf(&b, "\nUse '%s options' for shared flags, such as --from and --namespace.\n", name)
	}
	_, err := io.WriteString(cmd.OutOrStderr(), b.String())
	return err
}

func newOptionsCommand(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "options",
		Short: "List the flags that all commands share",
		Args:  session.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var shared pflag.FlagSet
			dump, _, err := cmd.Root().Find([]string{"dump"}) // it has all shared flags
			dump.Flags().VisitAll(func(f *pflag.Flag) {
				if session.IsShared(f) {
					shared.AddFlag(f)
				}
			})
			fmt.Fprintf(streams.Out, "Flags of all commands that read a cluster or print objects:\n\n%s",
				shared.FlagUsagesWrapped(helpWidth))
			return err
		},
	}
}
