package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

// TestExamples checks the flags and expressions of all examples in help texts.
func TestExamples(t *testing.T) {
	checked := map[string]int{}
	for _, cmd := range allCommands(cli.Command()) {
		for line := range strings.Lines(cmd.Example) {
			for _, command := range shellCommands(t, strings.TrimSpace(line)) {
				if command[0] != "crdcache" {
					continue
				}
				checked["commands"]++
				checkExample(t, line, command, checked)
			}
		}
		checkUsages(t, cmd, checked)
	}
	for _, topic := range []string{"commands", "--where", "--index", "eval"} {
		if checked[topic] == 0 {
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

// checkExample parses a command line and its expressions.
func checkExample(t *testing.T, line string, words []string, checked map[string]int) {
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
			checkExpression(t, f.Name, text, checked)
		}
	})
	if cmd.Name() == "eval" {
		checked["eval"]++
		text := cmd.Flags().Arg(0)
		if _, err := jsonpath.Compile(text); err != nil {
			if _, err := jsonpath.CompileFilter(text); err != nil {
				t.Errorf("the path in the example %s is invalid: %v", line, err)
			}
		}
	}
}

var usageExample = regexp.MustCompile(`as in '([^']+)'`)

// checkUsages parses the examples in the descriptions of flags.
func checkUsages(t *testing.T, cmd *cobra.Command, checked map[string]int) {
	t.Helper()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		for _, quoted := range usageExample.FindAllStringSubmatch(f.Usage, -1) {
			checkExpression(t, f.Name, quoted[1], checked)
		}
	})
}

// checkExpression parses the value of a flag for a condition.
func checkExpression(t *testing.T, flag, text string, checked map[string]int) {
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
	checked["--"+flag]++
	if err != nil {
		t.Errorf("--%s %s: %v", flag, text, err)
	}
}

// shellCommands splits a line of shell into commands and words. It supports quotes, pipes and redirection.
func shellCommands(t *testing.T, line string) [][]string {
	t.Helper()
	words := regexp.MustCompile(`'[^']*'|[^\s']+`).FindAllString(line, -1)
	all := [][]string{nil}
	for i := 0; i < len(words); i++ {
		switch word := words[i]; {
		case word == "|":
			all = append(all, nil)
		case word == ">":
			i++
		case strings.ContainsAny(word, `"$;&<`) && word[0] != '\'':
			t.Fatalf("%s: %s needs quotes, because the test does not support more of a shell", line, word)
		default:
			all[len(all)-1] = append(all[len(all)-1], strings.Trim(word, "'"))
		}
	}
	return all
}
