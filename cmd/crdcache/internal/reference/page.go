package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// markdown is the page docs/cli.md.
func markdown(root *cobra.Command) []byte {
	var b bytes.Buffer
	b.WriteString("# The command line\n\n<!-- Written by make generate from the commands: change those. -->\n\n")
	fmt.Fprintf(&b, "%s\n\n", paragraph(root.Long))
	b.WriteString("Installed as `kubectl-crdcache` it is `kubectl crdcache VERB …` (`make install`, which also installs shell\ncompletion and man pages).\n\n")
	b.WriteString("| verb | does |\n|---|---|\n")
	for _, cmd := range verbs(root) {
		fmt.Fprintf(&b, "| [%s](#%s) | %s |\n", cmd.Name(), cmd.Name(), cmd.Short)
	}
	b.WriteString(general)
	for _, cmd := range verbs(root) {
		section(&b, cmd)
		if cmd.Runnable() && cmd.Name() != "completion" {
			for _, sub := range verbs(cmd) {
				section(&b, sub)
			}
		}
	}
	return b.Bytes()
}

// verbs are the commands that are documented.
func verbs(root *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() {
			all = append(all, cmd)
		}
	}
	return all
}

// general is what holds for every verb.
const general = `
Data goes to stdout; warnings, progress and "No resources found" go to stderr, where ` + "`--quiet`" + ` leaves errors alone.
A type that is unknown or may not be read is reported and does not keep the others from being shown.

| exit code | means |
|---|---|
| 0 | done, also when there was nothing to show |
| 1 | an error |
| 2 | the command line, an expression or an index config is wrong |
| 3 | a type did not sync within ` + "`--timeout`" + ` |
| 4 | the server refused, for lack of rights or of an identity |
| 130 | interrupted |
`

// section documents one verb.
func section(b *bytes.Buffer, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n```\n%s\n```\n\n%s\n", strings.TrimPrefix(cmd.CommandPath(),
		cmd.Root().Name()+" "), cmd.UseLine(), paragraph(cmd.Long))
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", unindent(cmd.Example))
	}
	if flags := cmd.LocalFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(b, "\n<details><summary>Flags</summary>\n\n```\n%s```\n\n</details>\n", flags)
	}
}

// paragraph keeps the text of a command from being read as markdown.
func paragraph(text string) string {
	return strings.NewReplacer("*", `\*`, "<", "&lt;").Replace(strings.TrimSpace(text))
}

func unindent(example string) string {
	lines := strings.Split(example, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}
