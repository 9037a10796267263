package print

import (
	"fmt"
	"io"
	"slices"
	"strings"

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
	set.BoolVar(&f.style.ShowKind, "show-kind", false,
		"Print the kind before each name in tables; of several types it is always printed.")
	set.BoolVar(&f.style.ShowLabels, "show-labels", false, "Print the labels as the last column of tables.")
	set.StringSliceVarP(&f.style.LabelColumns, "label-columns", "L", nil,
		"Labels to print as columns of tables. May be repeated.")
	set.BoolVar(&f.showManagedFields, "show-managed-fields", false,
		"Keep metadata.managedFields in json and yaml output.")
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

// Table says how to print the objects of a type that are in one namespace, or in all if that is empty;
// withKind is for types that are shown with others.
func (s Style) Table(r discovery.Resource, namespace string, withKind bool) printers.PrintOptions {
	return printers.PrintOptions{
		NoHeaders:     s.NoHeaders,
		WithNamespace: namespace == "" && r.Scope == discovery.Namespaced,
		WithKind:      withKind || s.ShowKind,
		Kind:          r.GVK.GroupKind(),
		Wide:          s.Format.Name == Wide,
	}
}

// The formats. Those from CustomColumns on take an argument after "=", as with kubectl.
const (
	Table             = "table"
	Wide              = "wide"
	Name              = "name"
	JSON              = "json"
	YAML              = "yaml"
	KYAML             = "kyaml"
	JSONLines         = "jsonl"
	CSV               = "csv"
	CustomColumns     = "custom-columns"
	CustomColumnsFile = "custom-columns-file"
	JSONPath          = "jsonpath"
	JSONPathAsJSON    = "jsonpath-as-json"
	JSONPathFile      = "jsonpath-file"
	GoTemplate        = "go-template"
	GoTemplateFile    = "go-template-file"
)

var (
	plainFormats    = []string{Table, Wide, Name, JSON, YAML, KYAML, JSONLines, CSV}
	argumentFormats = []string{
		CustomColumns, CustomColumnsFile, JSONPath, JSONPathAsJSON, JSONPathFile, GoTemplate, GoTemplateFile,
	}
)

// aliases are names that kubectl has, too.
var aliases = map[string]string{"template": GoTemplate, "templatefile": GoTemplateFile}

// Format is a format with its argument.
type Format struct {
	Name     string
	Argument string
}

// ParseFormat reads the value of --output, and checks the argument as well.
func ParseFormat(text string) (Format, error) {
	name, argument, has := strings.Cut(text, "=")
	if meant, ok := aliases[name]; ok {
		name = meant
	}
	switch {
	case slices.Contains(argumentFormats, name):
		if argument == "" {
			return Format{}, fmt.Errorf("the output format %s needs an argument, as in %s", name,
				exampleOf(name))
		}
		format := Format{Name: name, Argument: argument}
		if _, err := New(format, io.Discard, List, false); err != nil {
			return Format{}, err
		}
		return format, nil
	case slices.Contains(plainFormats, name) && !has:
		return Format{Name: name}, nil
	case slices.Contains(plainFormats, name):
		return Format{}, fmt.Errorf("the output format %s takes no argument", name)
	}
	return Format{}, fmt.Errorf("there is no output format %q; use one of %s", text, FormatList())
}

// Formats are all formats, those with an argument with "=...".
func Formats() []string {
	all := slices.Clone(plainFormats)
	for _, name := range argumentFormats {
		all = append(all, name+"=...")
	}
	return all
}

// FormatList names all formats in one line, for help.
func FormatList() string { return strings.Join(Formats(), ", ") }

// exampleOf shows how to give an argument.
func exampleOf(name string) string {
	switch name {
	case CustomColumns:
		return CustomColumns + "=NAME:.metadata.name,ISSUER:.spec.issuerRef.name"
	case GoTemplate:
		return GoTemplate + "='{{range .items}}{{.metadata.name}} {{end}}'"
	case CustomColumnsFile, JSONPathFile, GoTemplateFile:
		return name + "=FILE"
	}
	return name + "='{.items[*].metadata.name}'"
}

// IsTable reports whether rows with columns of the type are printed.
func (f Format) IsTable() bool { return f.Name == Table || f.Name == Wide || f.Name == CSV }

// Flows reports whether objects can be printed as they come. The others make one document of all of them,
// which is whole or wrong.
func (f Format) Flows() bool {
	return f.IsTable() || slices.Contains([]string{Name, JSONLines, CustomColumns, CustomColumnsFile}, f.Name)
}
