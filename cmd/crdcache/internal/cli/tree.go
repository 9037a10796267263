package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/cmd/crdcache/internal/session"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// How much of a tree is printed.
const (
	defaultDepth = 10
	mostDepth    = 100 // a line is indented by its depth, so that longer chains cost their square
	defaultFan   = 100
)

// treeFlags are the flags of tree.
type treeFlags struct {
	reader    *session.ReadFlags
	types     []string
	depth     int
	limit     int
	output    string
	noHeaders bool
}

// newTree returns the command.
func newTree(streams genericiooptions.IOStreams) *cobra.Command {
	f := &treeFlags{reader: session.NewReadFlags()}
	cmd := &cobra.Command{
		Use:        "tree TYPE/NAME | TYPE NAME [flags]",
		SuggestFor: []string{"owners", "owner", "dependents", "children", "graph", "lineage", "refs", "references"},
		Short:      "Show what an object belongs to, what belongs to it, and what refers to what",
		Long: "Print the owners of an object and their owners, its dependents and theirs, and each with its state. With --config\n" +
			"also what the references declared there lead to, and what refers to the object by them. Owners are found by\n" +
			"their UID. A reference to what does not exist is printed at every object, as missing.\n\n" +
			"An object has to be read to be found. All types that can be listed and watched are read, but for events: of an\n" +
			"object within a namespace those of its namespace and those without one, otherwise those of all namespaces, as\n" +
			"with --all-namespaces. That may be much; --types reads only the types it names, and that of the object.\n" +
			"Only metadata is read of them, but for types whose references --config declares, and the objects of the tree are\n" +
			"got for their states. What was looked at, and what was not, is said on stderr, and is part of json and yaml.\n" +
			"Where a type cannot be read the rest is printed, and the exit code tells.\n\n" +
			"The state is that of the condition Ready, or where there is none of Available, Established, Complete, Succeeded,\n" +
			"Programmed, Accepted or the first one, or the phase. An object that comes again is not followed again.",
		Example: "  crdcache tree certificate/web-tls -n web\n" +
			"  crdcache tree clusterissuer letsencrypt --config indexes.yaml --types '*.cert-manager.io,ingresses'\n" +
			"  crdcache tree deploy/web -n web -o json",
		Args: func(cmd *cobra.Command, args []string) error {
			_, err := nameOne(cmd.CommandPath(), args)
			return err
		},
		RunE: runs(streams, f.toOptions),
	}
	f.add(cmd.Flags())
	f.reader.CompleteNamed(cmd, false)
	print.CompleteWords(cmd, "output", treeFormats)
	return cmd
}

var treeFormats = []string{formatTable, formatJSON, formatYAML}

func (f *treeFlags) add(set *pflag.FlagSet) {
	f.reader.AddNamed(set)
	f.reader.AddCache(set)
	set.StringSliceVar(&f.types, "types", nil, "Read only these types, and that of the object: names, categories and wildcards, as in 'pods,*.cert-manager.io'. May be repeated.")
	set.IntVar(&f.depth, "depth", defaultDepth, fmt.Sprintf("How many steps to go from the object, at most %d.", mostDepth))
	set.IntVar(&f.limit, "limit", defaultFan, "Print at most this many objects below each one, and how many more there are; 0 prints all.")
	set.StringVarP(&f.output, "output", "o", formatTable, "Output format: "+strings.Join(treeFormats, ", ")+".")
	set.BoolVar(&f.noHeaders, "no-headers", false, "Print the table without headers.")
}

// treeOptions are what flags and arguments amount to.
type treeOptions struct {
	*session.Reader
	named session.Named
	// types are those to read; none stands for all.
	types        []string
	inNamespace  bool // --namespace is given
	depth, limit int
	format       string
	noHeaders    bool
}

func (f *treeFlags) toOptions(cmd *cobra.Command, args []string, streams genericiooptions.IOStreams) (*treeOptions, error) {
	if err := f.validate(cmd.Flags()); err != nil {
		return nil, err
	}
	named, err := nameOne(cmd.CommandPath(), args)
	if err != nil {
		return nil, err
	}
	o := &treeOptions{
		named: named, inNamespace: cmd.Flags().Changed("namespace"), depth: f.depth, limit: f.limit, format: f.output, noHeaders: f.noHeaders,
	}
	cached := dynamicinformer.ResourceOptions{Prune: dynamicinformer.Prune{Presets: []dynamicinformer.PrunePreset{dynamicinformer.PruneManagedFields}}}
	if o.Reader, err = f.reader.Reader(cmd.Context(), []string{named.Type}, cached, streams); err != nil {
		return nil, err
	}
	o.named.Type, o.named.Anywhere = o.TypeNames()[0], true
	o.types, err = o.Config.TypeNames(f.types)
	return o, err
}

func (f *treeFlags) validate(set *pflag.FlagSet) error {
	switch {
	case f.depth < 1 || f.depth > mostDepth:
		return exit.Usagef("--depth is %d: give a number from 1 to %d", f.depth, mostDepth)
	case f.limit < 0:
		return exit.Usagef("--limit is %d: it must not be negative; 0 prints all", f.limit)
	case set.Changed("types") && len(f.types) == 0:
		return exit.Usagef("--types names no type: is it a variable that is not set?")
	case f.noHeaders && f.output != formatTable:
		return exit.Usagef("--no-headers goes with tables: leave out --output")
	}
	return print.OneOf("output format", f.output, treeFormats)
}

// nameOne reads the arguments, which name one object.
func nameOne(command string, args []string) (session.Named, error) {
	var of, name string
	switch len(args) {
	case 1:
		of, name, _ = strings.Cut(args[0], "/")
	case 2:
		of, name = args[0], args[1]
	}
	if of == "" || name == "" || strings.ContainsAny(of, ",*/") || len(content.IsPathSegmentName(name)) > 0 {
		return session.Named{}, exit.Usagef("name one object, as in '%s certificate/web-tls' or '%[1]s certificate web-tls'; got %s", command, quoteAll(args))
	}
	return session.Named{Type: of, Names: []string{name}}, nil
}

func quoteAll(args []string) string {
	if len(args) == 0 {
		return "nothing"
	}
	quoted := slices.Clone(args)
	for i, arg := range quoted {
		quoted[i] = fmt.Sprintf("%q", arg)
	}
	return strings.Join(quoted, " ")
}

// run reads the object and what may be related to it, and prints its tree. In several namespaces there may be several
// objects of the name, each with a tree.
func (o *treeOptions) run(ctx context.Context) error {
	wood, err := o.read(ctx)
	if wood == nil {
		return err
	}
	defer wood.close()
	return wood.print(ctx, err)
}
