package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/imports"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/mcp"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/query"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/serve"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/snapshots"
	_ "github.com/crdcache/crdcache/cmd/crdcache/internal/startup"
)

// disableClientLogs silences client-go, which logs each retry. The logger is global and must not change while
// an earlier command is still ending.
var disableClientLogs = sync.OnceFunc(func() { klog.SetLogger(klog.New(nil)) })

// shutdownGrace is how long Main waits for a command after ctx has ended. A blocking call, such as opening a
// pipe, ends with the process.
const shutdownGrace = 2 * time.Second

// Main runs a command line and returns the exit code. args[0] is the program's name. The command is
// interrupted when ctx ends.
func Main(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	disableClientLogs()
	stdout, stderr := print.NewStream(out), print.NewStream(errOut)
	root := newRoot(commandName(args[0]), genericiooptions.IOStreams{In: in, Out: stdout, ErrOut: stderr})
	root.SetArgs(args[1:])
	err := execute(ctx, root)
	if err == nil { // after an error, an abandoned command may hold the lock of stdout
		if writeErr := stdout.Err(); writeErr != nil { // cobra ignores write errors of help
			err = fmt.Errorf("write the output: %w", writeErr)
		}
	}
	if err != nil && ctx.Err() != nil {
		err = errors.Join(session.ErrInterrupted, err)
	}
	if !errors.Is(err, session.ErrDifferencesFound) && endedCode(err) == 0 { // otherwise it has been printed
		printErrors(stderr, err)
	}
	return exitCode(err)
}

// run runs a verb for another one, with empty standard input.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	return Main(ctx, append([]string{"crdcache"}, args...), strings.NewReader(""), out, errOut)
}

// execute runs a command. It abandons a command that does not end within shutdownGrace after ctx.
func execute(ctx context.Context, root *cobra.Command) error {
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }() // ends with the command
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(shutdownGrace):
		return ctx.Err()
	}
}

// printErrors prints each joined error on its own line. After an interrupt it prints nothing else, because
// the other errors are consequences.
func printErrors(w io.Writer, err error) {
	if errors.Is(err, session.ErrInterrupted) {
		err = session.ErrInterrupted
	}
	if comparison, ok := err.(*session.ComparisonError); ok {
		err = comparison.Cause
	}
	errs := session.SplitJoined(err)
	for _, e := range errs {
		if uncollected, ok := e.(*session.UncollectedError); ok && uncollected.IsToldBy(errs) {
			continue
		}
		lines := []string{print.OneSafeLine(e.Error())}
		if isMultiline(e) {
			lines = strings.Split(e.Error(), "\n")
		}
		for i, line := range lines {
			lines[i] = print.Truncate(print.Printable(line), print.MaxLineLength)
		}
		fmt.Fprintf(w, "error: %s\n", strings.Join(lines, "\n"))
	}
}

// commandName returns the program's name for help texts.
func commandName(program string) string {
	if strings.HasPrefix(filepath.Base(program), "kubectl-") {
		return "kubectl crdcache"
	}
	return "crdcache"
}

// Command returns the root command without input and output, for documentation.
func Command() *cobra.Command { return newRoot("crdcache", genericiooptions.NewTestIOStreamsDiscard()) }

func newRoot(name string, streams genericiooptions.IOStreams) *cobra.Command {
	root := newParent(&cobra.Command{
		Use:           "crdcache",
		Short:         "Query and watch a live cache of Kubernetes resources",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetUsageFunc(printUsage)
	root.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
		if cmd.Name() == cobra.ShellCompRequestCmd {
			session.RegisterCompletions(root)
		}
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return session.Usagef("%v; see '%s --help'", err, cmd.CommandPath())
	})
	root.AddCommand(
		snapshots.NewDiff(streams),
		newDump(streams),
		newParent(imports.New(streams)),
		mcp.New(streams, buildInfo().Version, run),
		newOptionsCommand(streams),
		query.New(streams),
		newResources(streams),
		serve.New(streams),
		newParent(snapshots.New(streams, buildInfo().Version)),
		newStats(streams),
		newSuggest(streams),
		newTree(streams),
		newValidate(streams),
		newVersion(streams),
		newWatch(streams),
	)
	addHelp(root)
	setHelpTexts(root, name)
	addBuiltins(root)
	return root
}

// setHelpTexts sets the program's name in the examples of all commands. It also disables cobra's [flags] in
// the usage line, because Use has it.
func setHelpTexts(cmd *cobra.Command, name string) {
	cmd.Example = strings.ReplaceAll(cmd.Example, "  crdcache ", "  "+name+" ")
	for _, sub := range cmd.Commands() {
		sub.DisableFlagsInUseLine = true
		setHelpTexts(sub, name)
	}
}

// addBuiltins adds cobra's commands help and completion. They reject arguments that cobra would ignore.
func addBuiltins(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Args = func(_ *cobra.Command, args []string) error {
		topic, rest, err := root.Find(args)
		return cmp.Or(err, rejectUnknownCommand(topic, rest))
	}
	completion, _, _ := root.Find([]string{"completion"})
	newParent(completion)
	for _, shell := range completion.Commands() {
		shell.Args = session.NoArgs
	}
}

// newParent completes a command that only has subcommands.
func newParent(cmd *cobra.Command) *cobra.Command {
	cmd.Args = rejectUnknownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.SuggestionsMinimumDistance = 2 // names that differ by up to two letters are probably misspelled
	return cmd
}

// rejectUnknownCommand is the Args function of commands that only have subcommands.
func rejectUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	suggestions := ""
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		suggestions = fmt.Sprintf("; did you mean %s?", strings.Join(similar, " or "))
	}
	return session.Usagef("unknown command %q for %q%s; see '%s --help'", args[0], cmd.CommandPath(), suggestions,
		cmd.CommandPath())
}

// Program runs the command line of the process until it ends or receives a signal, and returns the exit code.
// A second signal ends the process immediately.
func Program() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return Main(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
}
