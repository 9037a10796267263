package print

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"reflect"

	"github.com/DataDog/datadog-agent/pkg/template/text"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/cli-runtime/pkg/printers"
)

// templatePrinter evaluates a JSONPath, a Go template or KYAML on the v1 List of all objects, as kubectl
// does. It holds all objects in memory.
type templatePrinter struct {
	w              io.Writer
	printer        printers.ResourcePrinter
	list           unstructured.UnstructuredList
	eachSeparately bool
	omitsLineBreak bool // omits the final line break, as kubectl does for one object
}

func newTemplate(format Format, w io.Writer, framing Framing) (*templatePrinter, error) {
	printer, err := parseTemplate(format)
	if err != nil {
		return nil, fmt.Errorf("parse the template of -o %s: %w", format.Name, err)
	}
	// A KYAML document ends its last line.
	p := &templatePrinter{w: w, printer: printer, eachSeparately: framing != List,
		omitsLineBreak: framing == SingleNamed || format.Name == KYAML}
	p.list.Object = map[string]any{"kind": "List", "apiVersion": "v1",
		"metadata": map[string]any{"resourceVersion": ""}}
	return p, nil
}

// parseTemplate returns the printer of a format. Missing keys are not errors.
func parseTemplate(format Format) (printers.ResourcePrinter, error) {
	if format.Name == KYAML {
		return &kyamlPrinter{}, nil
	}
	text := format.Argument
	if format.Name == JSONPathFile || format.Name == GoTemplateFile {
		var err error
		if text, err = readTemplate(text); err != nil {
			return nil, err
		}
	}
	if format.Name == GoTemplate || format.Name == GoTemplateFile {
		return newGoTemplate(text)
	}
	printer, err := printers.NewJSONPathPrinter(text)
	if err != nil {
		return nil, fmt.Errorf("error parsing jsonpath %s, %w", text, err)
	}
	printer.AllowMissingKeys(true)
	printer.EnableJSONOutput(format.Name == JSONPathAsJSON)
	return printer, nil
}

const maxTemplateBytes = 1 << 20

func readTemplate(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxTemplateBytes+1))
	if err == nil && len(data) > maxTemplateBytes {
		err = fmt.Errorf("%s is larger than 1 MiB, the limit for templates", name)
	}
	return string(data), err
}

func (p *templatePrinter) Print(o Object) error {
	obj, err := o.decode()
	if err != nil {
		return err
	}
	if !p.eachSeparately {
		p.list.Items = append(p.list.Items, *obj)
		return nil
	}
	if err := p.evaluate(obj); err != nil {
		return fmt.Errorf("print %s: %w", describeObject(obj), err)
	}
	if p.omitsLineBreak {
		return nil
	}
	_, err = io.WriteString(p.w, "\n")
	return err
}

func (p *templatePrinter) Close() error {
	if p.eachSeparately {
		return nil
	}
	if err := p.evaluate(&p.list); err != nil {
		return fmt.Errorf("print the list: %w", err)
	}
	return nil
}

// evaluate prints an object or the list. Some templates, such as {range .absent}{[*]}, panic in the library.
func (p *templatePrinter) evaluate(obj runtime.Object) (err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			err = fmt.Errorf("the template cannot be evaluated: %v", recovered)
		}
	}()
	return p.printer.PrintObj(obj, p.w)
}

// goTemplate prints objects like kubectl's printer of templates, which calls no methods either. Linking
// text/template would keep all exported methods of the program: a sixth of its size.
type goTemplate struct {
	text     string
	compiled *template.Template
}

func newGoTemplate(text string) (*goTemplate, error) {
	compiled, err := template.New("output").Option("missingkey=default").
		Funcs(template.FuncMap{"exists": exists, "base64decode": decodeBase64}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("error parsing template %s, %w", text, err)
	}
	return &goTemplate{text, compiled}, nil
}

// PrintObj implements printers.ResourcePrinter. Like kubectl, it also writes errors to w, with the object.
func (t *goTemplate) PrintObj(object runtime.Object, w io.Writer) error {
	data, err := utiljson.Marshal(object)
	if err != nil {
		return err
	}
	var content map[string]any
	if err := utiljson.Unmarshal(data, &content); err != nil {
		return err
	}
	if err = t.execute(w, content); err == nil {
		return nil
	}
	_, _ = fmt.Fprintf(w, "Error executing template: %v. Printing more information for debugging the template:\n"+
		"\ttemplate was:\n\t\t%v\n\traw data was:\n\t\t%v\n\tobject given to template engine was:\n\t\t%+v\n\n",
		err, t.text, string(data), content) // the error of the template comes first
	return fmt.Errorf("error executing template %q: %w", t.text, err)
}

func (t *goTemplate) execute(w io.Writer, content map[string]any) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("caught panic: %+v", cause)
		}
	}()
	return t.compiled.Execute(w, content)
}

// exists reports whether a value has an element at a path of keys and indexes that is not null.
func exists(value any, path ...any) bool {
	for _, at := range path {
		key, container := reflect.ValueOf(at), reflect.ValueOf(value)
		switch {
		case container.Kind() == reflect.Map && key.Kind() == reflect.String &&
			container.MapIndex(key).IsValid():
			value = container.MapIndex(key).Interface()
		case (container.Kind() == reflect.Slice || container.Kind() == reflect.String) && key.CanInt() &&
			key.Int() >= 0 && key.Int() < int64(container.Len()):
			value = container.Index(int(key.Int())).Interface()
		default:
			return false
		}
	}
	return value != nil
}

func decodeBase64(text string) (string, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return "", fmt.Errorf("base64 decode failed: %w", err)
	}
	return string(data), nil
}
