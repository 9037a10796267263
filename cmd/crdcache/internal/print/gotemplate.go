package print

import (
	"encoding/base64"
	"fmt"
	"io"
	"reflect"

	"github.com/DataDog/datadog-agent/pkg/template/text"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

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
