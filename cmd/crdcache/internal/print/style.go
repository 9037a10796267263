package print

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/discovery"
)

// Style is the output format and the additional columns of tables.
type Style struct {
	Format     Format
	NoHeaders  bool
	ShowKind   bool
	ShowLabels bool
	// LabelColumns are labels with their own columns.
	LabelColumns []string
}

// Table returns the table options of a type. An empty namespace means all. withKind is set if several types
// are printed.
func (s Style) Table(r discovery.Resource, namespace string, withKind bool) printers.PrintOptions {
	return printers.PrintOptions{
		NoHeaders:     s.NoHeaders,
		WithNamespace: namespace == "" && r.Scope == discovery.Namespaced,
		WithKind:      withKind || s.ShowKind,
		Kind:          r.GVK.GroupKind(),
		Wide:          s.Format.Name == Wide,
	}
}

// Output formats. The formats from CustomColumns on have an argument after "=", as in kubectl.
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

// aliases are kubectl's alternative names.
var aliases = map[string]string{"template": GoTemplate, "templatefile": GoTemplateFile}

// Format is a format with its argument.
type Format struct {
	Name     string
	Argument string
}

// ParseFormat parses and validates the value of --output.
func ParseFormat(text string) (Format, error) {
	name, argument, has := strings.Cut(text, "=")
	if canonical, ok := aliases[name]; ok {
		name = canonical
	}
	switch {
	case slices.Contains(argumentFormats, name):
		if argument == "" {
			return Format{}, fmt.Errorf("the output format %s needs an argument, as in %s", name,
				formatExample(name))
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
	return Format{}, fmt.Errorf("unknown output format %q: use one of %s", text, FormatList())
}

// Formats returns all formats. The formats with an argument end in "=...".
func Formats() []string {
	formats := slices.Clone(plainFormats)
	for _, name := range argumentFormats {
		formats = append(formats, name+"=...")
	}
	return formats
}

// FormatList returns all formats in one line, for help.
func FormatList() string { return strings.Join(Formats(), ", ") }

// formatExample returns an example of a format with an argument.
func formatExample(name string) string {
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

// IsTable reports whether the format prints the columns of the type.
func (f Format) IsTable() bool { return f.Name == Table || f.Name == Wide || f.Name == CSV }

// Streams reports whether objects can be printed before all are read. The other formats are one document.
func (f Format) Streams() bool {
	return f.IsTable() || slices.Contains([]string{Name, JSONLines, CustomColumns, CustomColumnsFile}, f.Name)
}
