package print

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

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
			return Format{}, fmt.Errorf("the output format %s needs an argument, as in %s", name, exampleOf(name))
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

// Flows reports whether objects can be printed as they come. The others make one document of all of them, which is
// whole or wrong.
func (f Format) Flows() bool {
	return f.IsTable() || slices.Contains([]string{Name, JSONLines, CustomColumns, CustomColumnsFile}, f.Name)
}
