package print

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/cli-runtime/pkg/printers"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/internal/naming"
)

// Style is the output format and the additional columns of tables.
type Style struct {
	Format       Format
	NoHeaders    bool
	ShowKind     bool
	ShowLabels   bool
	LabelColumns []string
}

// TableOptions returns the table options of a type. An empty namespace means all. Names have their kind with
// withKind or --show-kind.
func (s Style) TableOptions(r discovery.Resource, namespace string, withKind bool) printers.PrintOptions {
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
	TableOptions      = "table"
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
	formatsWithoutArgument = []string{TableOptions, Wide, Name, JSON, YAML, KYAML, JSONLines, CSV}
	formatsWithArgument    = []string{
		CustomColumns, CustomColumnsFile, JSONPath, JSONPathAsJSON, JSONPathFile, GoTemplate, GoTemplateFile,
	}
)

var formatAliases = map[string]string{"template": GoTemplate, "templatefile": GoTemplateFile}

type Format struct {
	Name     string
	Argument string
}

// ParseFormat parses and validates the value of --output.
func ParseFormat(text string) (Format, error) {
	name, argument, hasArgument := strings.Cut(text, "=")
	if canonical, ok := formatAliases[name]; ok {
		name = canonical
	}
	switch {
	case slices.Contains(formatsWithArgument, name):
		if argument == "" {
			return Format{}, fmt.Errorf("the output format %s needs an argument, as in %s", name,
				formatExample(name))
		}
		format := Format{Name: name, Argument: argument}
		if _, err := NewPrinter(format, io.Discard, List, false); err != nil {
			return Format{}, err
		}
		return format, nil
	case slices.Contains(formatsWithoutArgument, name) && !hasArgument:
		return Format{Name: name}, nil
	case slices.Contains(formatsWithoutArgument, name):
		return Format{}, fmt.Errorf("the output format %s takes no argument", name)
	}
	return Format{}, fmt.Errorf("unknown output format %q: use one of %s", text, FormatList())
}

// Formats returns all formats. The formats with an argument end in "=...".
func Formats() []string {
	return slices.Concat(formatsWithoutArgument,
		naming.Texts(formatsWithArgument, func(name string) string { return name + "=..." }))
}

func FormatList() string { return strings.Join(Formats(), ", ") }

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

// IsTable reports whether the format prints columns of the type.
func (f Format) IsTable() bool { return f.Name == TableOptions || f.Name == Wide || f.Name == CSV }
