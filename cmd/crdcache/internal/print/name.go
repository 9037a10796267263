package print

import (
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// namePrinter prints "kind.group/name" a line, as kubectl get -o name does.
type namePrinter struct{ w io.Writer }

// Print implements Printer.
func (p *namePrinter) Print(obj *unstructured.Unstructured) error {
	gk := obj.GroupVersionKind().GroupKind()
	_, err := fmt.Fprintf(p.w, "%s/%s\n", strings.ToLower(gk.String()), obj.GetName())
	return err
}

// Close implements Printer.
func (p *namePrinter) Close() error { return nil }
