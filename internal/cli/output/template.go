package output

import (
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"
)

// templatePrinter evaluates a jsonpath or a Go template on the v1 List of all objects, as kubectl does. It has to
// keep all objects for that, unlike the other printers.
type templatePrinter struct {
	w       io.Writer
	printer printers.ResourcePrinter
	list    unstructured.UnstructuredList
	single  bool // evaluate on each object instead, and end the line
}

func newTemplate(format Format, w io.Writer) (*templatePrinter, error) {
	printer, err := genericclioptions.NewKubeTemplatePrintFlags().ToPrinter(format.Name + "=" + format.Argument)
	if err != nil {
		return nil, fmt.Errorf("the output format %s: %w", format.Name, err)
	}
	p := &templatePrinter{w: w, printer: printer}
	p.list.Object = map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{"resourceVersion": ""}}
	return p, nil
}

// Print implements Printer.
func (p *templatePrinter) Print(obj *unstructured.Unstructured) error {
	if !p.single {
		p.list.Items = append(p.list.Items, *obj)
		return nil
	}
	if err := p.printer.PrintObj(obj, p.w); err != nil {
		return fmt.Errorf("evaluating the template on %s: %w", describe(obj), err)
	}
	_, err := io.WriteString(p.w, "\n")
	return err
}

// Close implements Printer.
func (p *templatePrinter) Close() error {
	if p.single {
		return nil
	}
	if err := p.printer.PrintObj(&p.list, p.w); err != nil {
		return fmt.Errorf("evaluating the template: %w", err)
	}
	return nil
}
