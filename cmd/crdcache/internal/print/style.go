package print

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/exit"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// Style is in which format objects are printed, and what tables show besides the columns of the type.
type Style struct {
	Format     Format
	NoHeaders  bool
	ShowKind   bool
	ShowLabels bool
	// LabelColumns are labels that have columns of their own.
	LabelColumns []string
}

// StyleFlags are the flags that say so. Those that kubectl get has too are called the same.
type StyleFlags struct {
	output            string
	style             Style
	showManagedFields bool
}

// Add adds the flags.
func (f *StyleFlags) Add(set *pflag.FlagSet) {
	set.StringVarP(&f.output, "output", "o", Table, "Output format: "+FormatList()+".")
	set.BoolVar(&f.style.NoHeaders, "no-headers", false, "Print tables without headers.")
	set.BoolVar(&f.style.ShowKind, "show-kind", false, "Print the kind before each name in tables; of several types it is always printed.")
	set.BoolVar(&f.style.ShowLabels, "show-labels", false, "Print the labels as the last column of tables.")
	set.StringSliceVarP(&f.style.LabelColumns, "label-columns", "L", nil, "Labels to print as columns of tables. May be repeated.")
	set.BoolVar(&f.showManagedFields, "show-managed-fields", false, "Keep metadata.managedFields in json and yaml output.")
}

// Output is the format as it was given.
func (f *StyleFlags) Output() string { return f.output }

// Complete makes the shell complete the flags.
func (f *StyleFlags) Complete(cmd *cobra.Command) {
	CompleteWords(cmd, "output", Formats())
}

// Style checks the flags.
func (f *StyleFlags) Style() (Style, error) {
	style := f.style
	var err error
	if style.Format, err = ParseFormat(f.output); err != nil {
		return style, exit.Usagef("%v", err)
	}
	if style.Format.IsTable() {
		return style, nil
	}
	name := ""
	switch {
	case style.ShowKind:
		name = "show-kind"
	case style.ShowLabels:
		name = "show-labels"
	case len(style.LabelColumns) > 0:
		name = "label-columns"
	default:
		return style, nil
	}
	return style, exit.Usagef("--%s goes with tables: leave out --output, or give wide", name)
}

// Cached is how objects have to be cached to be printed.
func (f *StyleFlags) Cached() dynamicinformer.ResourceOptions {
	if f.showManagedFields {
		return dynamicinformer.ResourceOptions{}
	}
	return dynamicinformer.ResourceOptions{Transform: dynamicinformer.StripManagedFields}
}

// Table says how to print the objects of a type that are in one namespace, or in all if that is empty; withKind is
// for types that are shown with others.
func (s Style) Table(r discovery.Resource, namespace string, withKind bool) printers.PrintOptions {
	return printers.PrintOptions{
		NoHeaders:     s.NoHeaders,
		WithNamespace: namespace == "" && r.Scope == discovery.Namespaced,
		WithKind:      withKind || s.ShowKind,
		Kind:          r.GVK.GroupKind(),
		Wide:          s.Format.Name == Wide,
	}
}
