package session

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/naming"
)

// choiceFlag is a flag with a fixed set of values.
type choiceFlag struct {
	pflag.Value
	values []string
}

func (c choiceFlag) Set(text string) error {
	if !slices.Contains(c.values, text) {
		return fmt.Errorf("use %s", joinAlternatives(c.values))
	}
	return c.Value.Set(text)
}

// AddChoice adds a flag with a fixed set of values, and its completion. The first value is the default.
func AddChoice(cmd *cobra.Command, value *string, name, shorthand, usage string, values ...string) {
	cmd.Flags().StringVarP(value, name, shorthand, values[0], usage)
	flag := cmd.Flags().Lookup(name)
	flag.Value = choiceFlag{flag.Value, values}
	CompleteValues(cmd, name, values)
}

// AddOutput adds --output for verbs that do not print objects. The first format is the default.
func AddOutput(cmd *cobra.Command, value *string, formats ...string) {
	AddChoice(cmd, value, "output", "o", "Output format: "+joinAlternatives(formats)+".", formats...)
}

// joinAlternatives returns "a, b or c".
func joinAlternatives(values []string) string {
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + " or " + values[last]
}

// CompleteValues completes a flag with a fixed set of values. Values that end in "=..." need an argument.
func CompleteValues(cmd *cobra.Command, flag string, values []string) {
	setCompletion(cmd, flag, func(context.Context, []string, string) []string {
		return naming.Texts(values, func(value string) string { return strings.TrimSuffix(value, "...") })
	})
}

// ColorFlag is --color.
type ColorFlag struct{ when string }

func (f *ColorFlag) Add(cmd *cobra.Command) {
	AddChoice(cmd, &f.when, "color", "",
		"Color the output: auto, always or never. auto colors terminals unless NO_COLOR is set.", "auto", "always", "never")
}

func (f *ColorFlag) Always() bool { return f.when == "always" }

// Enabled reports whether output to out is colored.
func (f *ColorFlag) Enabled(out io.Writer) bool {
	return f.Always() || f.when == "auto" && os.Getenv("NO_COLOR") == "" && print.HasControlSequences(out)
}

// StyleFlags are the output flags of kubectl get.
type StyleFlags struct {
	Output            string
	style             print.Style
	showManagedFields bool
}

// Add adds the flags and their completion.
func (f *StyleFlags) Add(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVarP(&f.Output, "output", "o", print.TableOptions,
		"Output format: table, wide, name, json, yaml, kyaml, jsonl, csv, custom-columns, jsonpath or go-template. "+
			"With their arguments: "+print.FormatList()+".")
	set.BoolVar(&f.style.NoHeaders, "no-headers", false, "Print tables without headers.")
	set.BoolVar(&f.style.ShowKind, "show-kind", false, "")
	set.BoolVar(&f.style.ShowLabels, "show-labels", false, "Print the labels as the last column.")
	set.StringSliceVarP(&f.style.LabelColumns, "label-columns", "L", nil, "")
	set.BoolVar(&f.showManagedFields, "show-managed-fields", false, "")
	markShared(set, "no-headers", "show-kind", "show-labels", "label-columns", "show-managed-fields")
	CompleteValues(cmd, "output", print.Formats())
}

// Style validates the flags.
func (f *StyleFlags) Style() (print.Style, error) {
	style := f.style
	var err error
	if style.Format, err = print.ParseFormat(f.Output); err != nil {
		return style, Usagef("%v", err)
	}
	for _, flag := range []struct {
		name string
		set  bool
	}{
		{"show-kind", style.ShowKind}, {"show-labels", style.ShowLabels},
		{"label-columns", len(style.LabelColumns) > 0},
	} {
		if flag.set && !style.Format.IsTable() {
			return style, Usagef("--%s needs a table: omit --output, or use wide", flag.name)
		}
	}
	return style, nil
}

// InformerOptions returns the informer options that the output needs. As in kubectl, --show-managed-fields
// concerns only formats without an argument. Templates and custom columns can always select managedFields.
func (f *StyleFlags) InformerOptions() dynamicinformer.ResourceOptions {
	format, err := print.ParseFormat(f.Output)
	if f.showManagedFields || err == nil && format.Argument != "" {
		return dynamicinformer.ResourceOptions{}
	}
	omitted := []dynamicinformer.PrunePreset{dynamicinformer.PruneManagedFields}
	return dynamicinformer.ResourceOptions{Prune: dynamicinformer.Prune{Presets: omitted}}
}

const sharedFlag = "crdcache/shared"

// markShared marks flags that many commands have. --help does not list them.
func markShared(set *pflag.FlagSet, names ...string) {
	for _, name := range names {
		_ = set.SetAnnotation(name, sharedFlag, nil) // it fails only for unknown flags
	}
}

// IsShared reports whether many commands have a flag.
func IsShared(f *pflag.Flag) bool {
	_, isShared := f.Annotations[sharedFlag]
	return isShared
}

// SeparateLines lets line breaks separate the elements of flags of type stringSlice, like commas. The output
// of commands such as kubectl then is a list. pflag reads the first line and ignores the others.
func SeparateLines(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "stringSlice" && f.DefValue == "[]" {
			f.Value, f.DefValue = lineList{f.Value}, "" // which help does not print
		}
	})
}

type lineList struct{ pflag.Value }

func (l lineList) Set(text string) error {
	isBreak := func(r rune) bool { return r == '\n' || r == '\r' }
	return l.Value.Set(strings.Join(strings.FieldsFunc(text, isBreak), ","))
}
