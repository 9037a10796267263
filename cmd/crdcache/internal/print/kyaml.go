package print

import (
	"bytes"
	"encoding/json"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml/kyaml"
)

// kyamlPrinter is cli-runtime's printer of KYAML, which fails as its YAML does for some of what objects can hold. Those
// characters come out as escapes.
type kyamlPrinter struct{ printers.KYAMLPrinter }

// PrintObj implements printers.ResourcePrinter.
func (p *kyamlPrinter) PrintObj(object runtime.Object, w io.Writer) error {
	var text bytes.Buffer
	if err := p.KYAMLPrinter.PrintObj(object, &text); err != nil {
		plain, failed := json.Marshal(object)
		if failed != nil {
			return failed
		}
		text.Reset()
		encoder := kyaml.Encoder{}
		if failed := encoder.FromYAML(bytes.NewReader(escapeUnprintable(plain)), &text); failed != nil {
			return err
		}
	}
	_, err := text.WriteTo(w)
	return err
}
