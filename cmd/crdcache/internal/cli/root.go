package cli

import (
	"context"
	"encoding/json"
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

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
)

// silence keeps client-go from logging each retry; what a person needs of that comes as an error. The logger
// is the process's, and may not change under what an earlier command left to end.
var silence = sync.OnceFunc(func() { klog.SetLogger(klog.New(nil)) })

// grace is how long a command may take to end once ctx has: what cannot be interrupted, as opening a pipe
// that nobody writes to, is left to the end of the process.
const grace = 2 * time.Second

// Main runs the command line args (with the program's name first) and returns the exit code. It ends
// early when ctx does, as on an interrupt.
func Main(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	silence()
	stdout, stderr := print.NewStream(out), print.NewStream(errOut)
	root := newRoot(commandName(args[0]), genericiooptions.IOStreams{In: in, Out: stdout, ErrOut: stderr})
	root.SetArgs(args[1:])
	err := execute(context.WithValue(ctx, commandLine{}, args), root)
	if err == nil { // a command that was given up may be writing still, and Err would wait for it
		if failed := stdout.Err(); failed != nil { // cobra does not look when it prints help
			err = fmt.Errorf("writing the output: %w", failed)
		}
	}
	if err != nil && ctx.Err() != nil {
		err = errors.Join(exit.ErrInterrupted, err)
	}
	if !exit.Reported(err) {
		report(stderr, err)
	}
	return exit.Code(err)
}

// commandLine is the key of the arguments of the process, with the name of the program, in the context of a
// command.
type commandLine struct{}

// execute runs a command, and gives it up when it does not end although ctx has.
func execute(ctx context.Context, root *cobra.Command) error {
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(ctx) }() // ends with the command
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return ctx.Err()
	}
}

// report prints each of the errors that are joined in err as a line of its own, or as several where those
// belong below each other. An interrupt is said alone: what failed because of it is no news.
func report(w io.Writer, err error) {
	if errors.Is(err, exit.ErrInterrupted) {
		err = exit.ErrInterrupted
	}
	for _, e := range exit.Split(err) {
		if exit.Lines(e) {
			fmt.Fprintf(w, "error: %s\n", lines(e.Error()))
			continue
		}
		fmt.Fprintf(w, "error: %s\n", print.Line(e.Error()))
	}
}

// lines makes text safe to show on a terminal and keeps its lines, as far as a line may be long: a config can
// be one line of megabytes.
func lines(text string) string {
	all := strings.Split(text, "\n")
	for i, one := range all {
		all[i] = print.Cut(print.Printable(one), print.MaxLine)
	}
	return strings.Join(all, "\n")
}

// commandName is how help calls the program: as a kubectl plugin it is "kubectl crdcache".
func commandName(program string) string {
	if strings.HasPrefix(filepath.Base(program), "kubectl-") {
		return "kubectl crdcache"
	}
	return "crdcache"
}

// Command is the root command as it is documented, without input and output.
func Command() *cobra.Command {
	root := newRoot("crdcache", genericiooptions.NewTestIOStreamsDiscard())
	root.InitDefaultCompletionCmd()
	return root
}

func newRoot(name string, streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use:   "crdcache",
		Short: "Keep and query a live copy of Kubernetes resources",
		Long: "crdcache keeps a live, indexed copy of any Kubernetes resource, above all of custom resources\n" +
			"that no Go type exists for, and prints what it holds.",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: name},
		Args:        noSuchVerb,
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		// Two letters wrong are a slip; more are another word.
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.Usagef("%v; see '%s --help'", err, cmd.CommandPath())
	})
	root.AddCommand(
		newDump(streams),
		newEval(streams),
		newQuery(streams),
		newResources(streams),
		newServe(streams),
		newSnapshot(streams),
		newStats(streams),
		newSuggest(streams),
		newTree(streams),
		newValidate(streams),
		newVersion(streams),
		newWatch(streams),
	)
	for _, cmd := range root.Commands() {
		cmd.DisableFlagsInUseLine = true // it says [flags] where they go
	}
	beStrict(root)
	rename(root, name)
	return root
}

// rename makes the examples of all commands call the program by its name.
func rename(cmd *cobra.Command, name string) {
	cmd.Example = strings.ReplaceAll(cmd.Example, "  crdcache ", "  "+name+" ")
	for _, sub := range cmd.Commands() {
		rename(sub, name)
	}
}

// beStrict makes errors of what cobra's own commands pass over with exit code 0: help and scripts for nothing
// that is.
func beStrict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				if topic, _, err := root.Find(args); err != nil || topic != root {
					return err
				}
				return noSuchVerb(root, args)
			}
		case "completion":
			cmd.Args = func(cmd *cobra.Command, args []string) error {
				if len(args) == 0 {
					return nil
				}
				return exit.Usagef("there is no completion for %q; use one of bash, zsh, fish, powershell",
					args[0])
			}
			for _, shell := range cmd.Commands() {
				shell.Args = func(cmd *cobra.Command, args []string) error {
					if len(args) == 0 {
						return nil
					}
					return exit.Usagef("%q is not needed: '%s' takes no arguments", args[0],
						cmd.CommandPath())
				}
			}
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}

// noSuchVerb is the check of arguments of the root command, which come there when no verb has taken them.
func noSuchVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	meant := ""
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		meant = fmt.Sprintf("; did you mean %s?", strings.Join(like, " or "))
	}
	return exit.Usagef("unknown command %q for %q%s; see '%s --help'", args[0], cmd.CommandPath(), meant,
		cmd.CommandPath())
}

// Program runs the command line of the process, until it ends or a signal tells it to, and returns the exit
// code. A second signal ends the process even when it cannot write.
func Program() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return Main(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
}

// The output formats of verbs that print no objects.
const (
	formatText  = "text"
	formatTable = "table"
	formatWide  = "wide"
	formatName  = "name"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

// runner is what the flags and arguments of a verb amount to.
type runner interface {
	run(ctx context.Context) error
}

// runs is how verbs run: their flags and arguments are checked and become options, without asking a server,
// and those run.
func runs[O runner](streams genericiooptions.IOStreams, toOptions func(*cobra.Command, []string,
	genericiooptions.IOStreams) (O, error)) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		o, err := toOptions(cmd, args, streams)
		if err != nil {
			return err
		}
		return o.run(cmd.Context())
	}
}

// writeStructured writes a record of a verb as YAML, or else as JSON.
func writeStructured(out io.Writer, format string, record any) error {
	if format == formatYAML {
		text, err := print.MarshalYAML(record)
		if err == nil {
			_, err = out.Write(text)
		}
		return err
	}
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(record)
}
