package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/indexers/query"
)

// TestExamples checks the flags and expressions of all examples in help texts. Each command with an argument
// in capital letters has examples.
func TestExamples(t *testing.T) {
	checkedCounts := map[string]int{}
	for _, cmd := range allCommands(cli.Command()) {
		if cmd.Short == "" || cmd.Long == "" && cmd.Parent() == cmd.Root() {
			t.Errorf("%s has no description", cmd.CommandPath())
		}
		if cmd.Example == "" && regexp.MustCompile("[A-Z]{4}").MatchString(cmd.Use) {
			t.Errorf("%s has no examples", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			for _, command := range shellCommands(t, strings.TrimSpace(line)) {
				if command[0] != "crdcache" {
					continue
				}
				checkedCounts["commands"]++
				parseExample(t, line, command, checkedCounts)
			}
		}
		parseFlagExamples(t, cmd, checkedCounts)
	}
	for _, topic := range []string{"commands", "--where", "--index"} {
		if checkedCounts[topic] == 0 {
			t.Errorf("no example uses %s", topic)
		}
	}
}

func allCommands(parent *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	for _, cmd := range parent.Commands() {
		all = append(append(all, cmd), allCommands(cmd)...)
	}
	return all
}

// parseExample parses a command line and its expressions.
func parseExample(t *testing.T, line string, words []string, checkedCounts map[string]int) {
	t.Helper()
	cmd, args, err := cli.Command().Find(words[1:])
	if err == nil {
		err = cmd.ParseFlags(args)
	}
	if err == nil {
		err = cmd.ValidateArgs(cmd.Flags().Args())
	}
	if err != nil {
		t.Errorf("the example %s is invalid: %v", line, err)
		return
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values, _ := cmd.Flags().GetStringArray(f.Name)
		for _, text := range values {
			parseExpression(t, f.Name, text, checkedCounts)
		}
	})
}

var usageExample = regexp.MustCompile(`as in '([^']+)'`)

// parseFlagExamples parses the examples in the descriptions of flags.
func parseFlagExamples(t *testing.T, cmd *cobra.Command, checkedCounts map[string]int) {
	t.Helper()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		for _, quoted := range usageExample.FindAllStringSubmatch(f.Usage, -1) {
			parseExpression(t, f.Name, quoted[1], checkedCounts)
		}
	})
}

// parseExpression parses the value of a flag for a condition.
func parseExpression(t *testing.T, flag, text string, checkedCounts map[string]int) {
	t.Helper()
	var err error
	switch flag {
	case "where":
		_, err = query.NewMatcher(query.Where(text))
	case "index", "not":
		_, err = query.Parse(text)
	default:
		return
	}
	checkedCounts["--"+flag]++
	if err != nil {
		t.Errorf("--%s %s: %v", flag, text, err)
	}
}

// shellCommands splits a line of shell into commands and words. It supports quotes, pipes and redirection.
func shellCommands(t *testing.T, line string) [][]string {
	t.Helper()
	words := regexp.MustCompile(`'[^']*'|[^\s']+`).FindAllString(line, -1)
	commands := [][]string{nil}
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case word == "|":
			commands = append(commands, nil)
		case word == ">":
			i++
		case strings.ContainsAny(word, `"$;&<`) && word[0] != '\'':
			t.Fatalf("%s: %s needs quotes, because the test does not support more of a shell", line, word)
		default:
			commands[len(commands)-1] = append(commands[len(commands)-1], strings.Trim(word, "'"))
		}
	}
	return commands
}
